#!/usr/bin/env bash
# Makes build/venv-loaders from requirements.txt, again when that file has changed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$here/../../build/venv-loaders
cmp -s "$here/requirements.txt" "$venv/installed.txt" && exit
"${STOKER_PYTHON:-/usr/bin/python3}" -m venv --clear --system-site-packages "$venv"
"$venv/bin/pip" --quiet install --no-deps --requirement "$here/requirements.txt"
cp "$here/requirements.txt" "$venv/installed.txt"
