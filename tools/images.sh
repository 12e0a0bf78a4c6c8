#!/usr/bin/env bash
# Builds Stoker's images without a container engine: buildah on bases made by debootstrap. Skips unchanged images.
#
# usage: tools/images.sh [NAME...]     NAME: operator, sidecar, node, trainer, s3 (default: these five), or a
#                                     controller of e2e/controllers/build.sh
#   STOKER_PRESET  build folder of the binaries of operator, sidecar and node: build/PRESET/bin (default release)
#   STOKER_TAG     tag of the images: localhost/stoker-NAME:TAG (default dev); s3 is stoker-e2e-s3
# With a container engine, `docker build -f docker/NAME.Dockerfile .` does the same from public bases.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${STOKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stoker}
binaries=$root/build/${STOKER_PRESET:-release}/bin
tag=${STOKER_TAG:-dev}
export STORAGE_DRIVER=overlay BUILDAH_ISOLATION=chroot

say() { echo "images: $*" >&2; }
die() { say "$*"; exit 1; }

image_id() { buildah images --quiet --no-trunc "$1" 2>/dev/null || echo ""; } # IMAGE; empty if there is none

# A note beside each image records the hash of its inputs and its id.
note_of() { echo "$cache/images/$(tr '/:' '__' <<<"$1")"; }                                      # IMAGE
is_made_from() { [ -n "$(image_id "$1")" ] && [ "$(cat "$(note_of "$1")" 2>/dev/null)" = "$2 $(image_id "$1")" ]; } # IMAGE HASH
note() { echo "$2 $(image_id "$1")" >"$(note_of "$1")"; }                                        # IMAGE HASH

content_hash() { # FILE|DIRECTORY: hash of the bytes, and of the names inside a directory
  (
    cd "$(dirname "$1")"
    find "$(basename "$1")" -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16
  )
}

mirror() { # this machine's Debian mirror, from apt's settings
  local uri
  # shellcheck disable=SC2016 # apt's fields
  uri=$(apt-get indextargets --format '$(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "main" && $2 ~ /\/debian\/?$/ { print $2; exit }')
  [ -n "$uri" ] || die "apt knows no Debian mirror: run apt-get update"
  echo "$uri"
}

make_base() { # SUITE IMAGE: a minimal Debian, once
  local suite=$1 image=$2 tree=$cache/bases/$1 container begin=$SECONDS
  ! is_made_from "$image" "$suite" || return 0
  say "making $image (once)"
  rm -rf "$tree"
  mkdir -p "$tree"
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$tree" "$(mirror)" >"$tree.log" 2>&1 ||
    die "debootstrap failed: see $tree.log"
  rm -rf "$tree"/var/cache/apt/archives/*.deb "$tree"/var/lib/apt/lists/* \
    "$tree"/usr/share/{doc,man,locale,info}/*
  container=$(buildah from scratch)
  buildah copy --quiet "$container" "$tree" / >/dev/null
  buildah config --cmd bash "$container"
  buildah commit --quiet --rm "$container" "$image" >/dev/null
  note "$image" "$suite"
  rm -rf "$tree"
  say "made $image in $((SECONDS - begin)) s"
}

# Builds localhost/stoker-NAME:TAG from a folder with exactly its inputs, unless that image exists already.
build_image() { # NAME DOCKERFILE BASE_SUITE CONTEXT [buildah bud options...]
  local name=$1 dockerfile=$2 suite=$3 context=$4 image=localhost/stoker-$1:$tag base hash old begin=$SECONDS
  shift 4
  base=localhost/debian:$suite-slim
  make_base "$suite" "$base"
  hash=$(content_hash "$dockerfile")-$(content_hash "$context")-$(image_id "$base")
  ! is_made_from "$image" "$hash" || return 0
  say "building $image"
  old=$(image_id "$image")
  buildah bud --quiet --layers --network host --build-arg "BASE_IMAGE=$base" \
    --file "$dockerfile" --tag "$image" "$@" "$context" >"$work/$name.log" 2>&1 ||
    { cat "$work/$name.log" >&2; die "building $image failed"; }
  [ -z "$old" ] || [ "$old" = "$(image_id "$image")" ] || buildah rmi "$old" >/dev/null 2>&1 || say "$old is in use"
  note "$image" "$hash"
  say "built $image in $((SECONDS - begin)) s"
}

# A library missing from a program's image would fail only in the cluster, where it is hard to diagnose.
check_libraries() { # NAME PROGRAM
  local container missing
  container=$(buildah from --pull-never "localhost/stoker-$1:$tag")
  missing=$(buildah run --user 0 "$container" -- ldd "/usr/local/bin/$2" | awk '/not found/ { print $1 }')
  buildah rm "$container" >/dev/null
  [ -z "$missing" ] || die "the image of $1 lacks $missing"
}

image_of_program() { # NAME [PROGRAM]...: stoker-NAME with these programs, from existing binaries
  local name=$1 program
  shift
  mkdir -p "$work/$name"
  for program in "stoker-$name" "$@"; do
    [ -x "$binaries/$program" ] || die "$binaries/$program is missing: build it first"
    strip -o "$work/$name/$program" "$binaries/$program"
  done
  build_image "$name" "$root/docker/$name.Dockerfile" bookworm "$work/$name" --target prebuilt
  for program in "stoker-$name" "$@"; do
    check_libraries "$name" "$program"
  done
}

image_s3() {
  local programs dataset
  programs=$("$root/e2e/origin/build.sh")
  dataset=$cache/datasets/mnist-$(content_hash "$root/e2e/origin/mnist.py")
  if [ ! -d "$dataset" ]; then
    mkdir -p "$work/mnist" "$cache/datasets"
    "$root/e2e/origin/mnist.py" "$work/mnist"
    mv "$work/mnist" "$dataset"
  fi
  mkdir -p "$work/s3"
  cp "$programs"/* "$root"/e2e/origin/{serve-s3,origin-count} "$work/s3"
  # One file: fifteen thousand small ones would be slow to load into a node, and slower to delete.
  tar --directory "$dataset" --sort name --owner 65532 --group 65532 --numeric-owner --mtime 2000-01-01 \
    --create --file "$work/s3/bucket.tar" .
  build_image e2e-s3 "$root/e2e/origin/Dockerfile" bookworm "$work/s3"
}

image_controller() { # NAME
  local program
  program=$("$root/e2e/controllers/build.sh" "$1")
  mkdir -p "$work/$1"
  cp "$program/manager" "$work/$1/manager"
  build_image "$1" "$root/e2e/controllers/Dockerfile" bookworm "$work/$1"
}

image_trainer() {
  local part
  mkdir -p "$work/trainer/docs"
  for part in cmake common proto client docs/examples; do
    [ -d "$root/$part" ] || die "$part/ is missing"
    git -C "$root" ls-files -z --cached --others --exclude-standard "$part" |
      tar --directory "$root" --null --files-from - --create | tar --directory "$work/trainer" --extract
  done
  build_image trainer "$root/docker/trainer.Dockerfile" trixie "$work/trainer"
}

[ "$(id -u)" = 0 ] || die "needs root"
work=$(mktemp -d)
trap 'wait; rm -rf "$work"' EXIT # wait: a parallel build still needs $work
mkdir -p "$cache/bases" "$cache/images"
exec 7>"$cache/.images-lock" # one at a time: two would race for the bases
flock 7
build_one() { # NAME
  case $1 in
    operator | node) image_of_program "$1" ;;
    sidecar) image_of_program sidecar stoker-s3 stoker-files stoker ;;
    trainer) image_trainer ;;
    s3) image_s3 ;;
    kueue | jobset | training-operator | kubeflow-trainer) image_controller "$1" ;;
    *) die "unknown image '$1' (operator, sidecar, node, trainer, s3, or a controller of e2e/controllers)" ;;
  esac
}

[ $# -gt 0 ] || set -- operator sidecar node trainer s3
# Builds the trainer's image beside the others: it takes longest and shares no base with them.
trainer=""
for name in "$@"; do
  [ "$name" != trainer ] || { build_one trainer & trainer=$!; }
done
for name in "$@"; do
  [ "$name" = trainer ] || build_one "$name"
done
[ -z "$trainer" ] || wait "$trainer" || die "the image of trainer failed"
