#!/usr/bin/env bash
# Runs an S3 server with a pacer on loopback, for tests and benchmarks without a cluster. Ends on SIGTERM.
#
# usage: serve.sh DIR [PORT] [PACED_PORT]        default ports: 9001 and 9000
#   DIR/objects/BUCKET/KEY are the objects, DIR/metadata their ETags, DIR/logs what origin-count reads; made if missing
#   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY   credentials (stoker, stoker-secret)
#   FIRST_BYTE_MS (20), BYTES_PER_SECOND (200000000)
# Prints "ready" when both answer.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:?usage: serve.sh DIR [PORT] [PACED_PORT]}
port=${2:-9001} paced_port=${3:-9000}
programs=$("$here/build.sh")

mkdir -p "$dir/objects" "$dir/metadata" "$dir/logs"
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
trap 'exit 0' TERM INT

ROOT_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-stoker} ROOT_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-stoker-secret} \
  "$programs/versitygw" --port "127.0.0.1:$port" --keep-alive --quiet --access-log "$dir/logs/access.log" \
  posix --sidecar "$dir/metadata" "$dir/objects" >"$dir/logs/server.log" 2>&1 &
"$programs/stoker-pacer" --listen="127.0.0.1:$paced_port" --upstream="127.0.0.1:$port" --log="$dir/logs/paced.log" \
  --first-byte-ms="${FIRST_BYTE_MS:-20}" --bytes-per-second="${BYTES_PER_SECOND:-200000000}" &

answers() { (echo >"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
for _ in $(seq 100); do
  [ "$(jobs -r -p | wc -l)" = 2 ] || { cat "$dir/logs/server.log" >&2; exit 1; }
  if answers "$port" && answers "$paced_port"; then
    echo ready
    wait -n
    exit 1 # the server or the pacer has exited
  fi
  sleep 0.1
done
echo "serve.sh: not ready after 10 s" >&2
exit 1
