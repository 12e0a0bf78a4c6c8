#!/usr/bin/env bash
# usage: venv.sh NAME: makes build/venv-NAME from NAME.txt, again when that file has changed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$here/../../build/venv-$1
cmp -s "$here/$1.txt" "$venv/installed.txt" && exit
"${STOKER_PYTHON:-/usr/bin/python3}" -m venv --clear --system-site-packages "$venv"
"$venv/bin/pip" --quiet install --no-deps --requirement "$here/$1.txt"
cp "$here/$1.txt" "$venv/installed.txt"
