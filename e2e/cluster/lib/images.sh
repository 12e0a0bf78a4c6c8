# shellcheck shell=bash
# Loads images into nodes, without a registry. Sourced, never run.

export STORAGE_DRIVER=overlay # for buildah
PAUSE=$STATE/images/pause-$(sha256sum "$HERE/pause.c" | cut -c1-12)

import_image() { # N TAR KEY: imports once per node disk
  local stamp=$STATE/node-$1/fs/var/lib/containerd/.loaded-$3
  [ ! -e "$stamp" ] || return 0
  in_node "$1" ctr --namespace k8s.io images import - <"$2" >/dev/null
  touch "$stamp"
}

export_image() { # NAME TAR
  buildah push --quiet "$1" "docker-archive:$2.part:$1" >/dev/null
  mv "$2.part" "$2"
}

make_pause_image() {
  local container name=localhost/stoker-e2e-pause:1
  mkdir -p "$STATE/images"
  [ ! -s "$PAUSE.tar" ] || return 0
  cc -Os -static -s -o "$PAUSE" "$HERE/pause.c"
  container=$(buildah from scratch)
  buildah copy --quiet "$container" "$PAUSE" /pause >/dev/null
  buildah config --entrypoint '["/pause"]' --user 65535:65535 "$container"
  buildah commit --quiet --rm "$container" $name >/dev/null
  export_image $name "$PAUSE.tar"
}

load_image() { # NAME|TAR: loads it into all running nodes; keeps the export, named by image id
  local id tar=$1 n job jobs=()
  if [ -f "$1" ]; then
    id=$(sha256sum "$1" | cut -c1-24)
  else
    id=$(buildah inspect --type image --format '{{.FromImageID}}' "$1") || die "no image $1"
    id=${id:0:24}-$(tr -c 'A-Za-z0-9.\n' _ <<<"$1")
    tar=$STATE/images/$id.tar
    if [ ! -s "$tar" ]; then
      find "$STATE/images" -name "*-${id#*-}.tar" -delete # older exports of the same name
      export_image "$1" "$tar"
    fi
  fi
  for n in $(node_numbers); do
    ! is_up "$n" || { import_image "$n" "$tar" "$id" & jobs+=($!); }
  done
  for job in "${jobs[@]}"; do wait "$job"; done
}
