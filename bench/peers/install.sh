#!/usr/bin/env bash
# Installs the peers of `make bench-peers`: Debian packages, wheels into build/venv-peers, `make loaders`' libraries.
# Reports packages that a registry refuses and continues; run.py then says "not run". Fast if everything is installed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
venv=$root/build/venv-peers

refused() { echo "bench-peers: not installed: $*" >&2; }

"$root/tools/deps.sh" peers || refused "Debian's $("$root/tools/deps.sh" --check peers | xargs)"

[ -x "$venv/bin/pip" ] || "${STOKER_PYTHON:-/usr/bin/python3}" -m venv "$venv" || refused "$venv"
grep -v '^#' "$root/bench/peers/requirements.txt" | while read -r wheel; do
  "$venv/bin/pip" --quiet show "${wheel%%==*}" 2>/dev/null | grep -qx "Version: ${wheel##*==}" ||
    "$venv/bin/pip" --quiet install --no-deps "$wheel" || refused "PyPI's $wheel"
done

{ "$root/tools/deps.sh" loaders && "$root/tests/loaders/venv.sh"; } || refused "the loaders (tests/loaders/venv.sh)"
exit 0
