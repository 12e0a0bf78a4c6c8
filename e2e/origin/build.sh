#!/usr/bin/env bash
# Builds the S3 server of the tests and the demo (versitygw), and the pacer, into the cache; prints their folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=e2e/cluster/lib/programs.sh
. "$here/../cluster/lib/programs.sh"

mkdir -p "$CACHE/programs"
exec 8>"$CACHE/programs/.lock"
flock 8

server_version=$(module_version "$here/versitygw" github.com/versity/versitygw)
build_program "$here/versitygw" versitygw github.com/versity/versitygw/cmd/versitygw "-X main.Version=$server_version"
server=$(program_dir "$here/versitygw")/versitygw

dir=$CACHE/programs/origin-$(cat "$here/pacer.cc" "$here/versitygw/go.mod" "$here/versitygw/go.sum" | sha256sum | cut -c1-12)
if [ ! -x "$dir/stoker-pacer" ]; then
  mkdir -p "$dir"
  ln -f "$server" "$dir/versitygw"
  # Linked statically: the same file runs on this machine and in an image with any base.
  nice -n 10 g++ -std=c++20 -O2 -static -pthread -s -o "$dir/.pacer.part" "$here/pacer.cc"
  mv "$dir/.pacer.part" "$dir/stoker-pacer"
fi
echo "$dir"
