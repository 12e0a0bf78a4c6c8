#!/usr/bin/env bash
# usage: build.sh NAME     NAME: kueue, jobset, training-operator, kubeflow-trainer
# Builds a controller from its Go module into the cache, as `manager`, with the module's own manifests beside it, and
# prints their folder. Cold: three to four minutes on two cores.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=e2e/cluster/lib/programs.sh
. "$here/../cluster/lib/programs.sh"

case ${1:-} in
  kueue) module=sigs.k8s.io/kueue program=/cmd/kueue manifests=charts/kueue ;;
  jobset) module=sigs.k8s.io/jobset program="" manifests=config ;;
  training-operator)
    module=github.com/kubeflow/training-operator program=/cmd/training-operator.v1 manifests=manifests ;;
  kubeflow-trainer)
    module=github.com/kubeflow/trainer/v2 program=/cmd/trainer-controller-manager manifests=manifests ;;
  *) echo "unknown controller '${1:-}' (kueue, jobset, training-operator, kubeflow-trainer)" >&2; exit 2 ;;
esac

mkdir -p "$CACHE/programs"
exec 8>"$CACHE/programs/.lock"
flock 8

build_program "$here/$1" manager "$module$program"
dir=$(program_dir "$here/$1")
if [ ! -d "$dir/manifests" ]; then
  go=$(find_go "$here/$1")
  source=$(cd "$here/$1" && GOTOOLCHAIN=local "$go" list -m -f '{{.Dir}}' "$module")
  cp -r --no-preserve=mode "$source/$manifests" "$dir/.manifests.part"
  # `build.sh jobset` builds JobSet, so leave it out of the trainer's manifests, as their kustomization.yaml suggests.
  [ "$1" != kubeflow-trainer ] || sed -i '/third-party\/jobset/d' "$dir/.manifests.part/overlays/manager/kustomization.yaml"
  mv "$dir/.manifests.part" "$dir/manifests"
fi
echo "$dir"
