#!/usr/bin/env bash
# Builds what Debian does not package: the Kubernetes programs, CoreDNS, helm, and the csi-sanity test suite.
# Cold: 7 to 10 minutes on two cores. Warm: nothing to do, in a tenth of a second.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=e2e/cluster/lib/programs.sh
. "$here/lib/programs.sh"

mkdir -p "$CACHE/programs"
exec 8>"$CACHE/programs/.lock" # two checkouts share the cache
flock 8

release=$(module_version "$here/k8s" k8s.io/kubernetes)
minor=${release#v1.}
stamp=k8s.io/component-base/version
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
  build_program "$here/k8s" $program k8s.io/kubernetes/cmd/$program \
    "-X $stamp.gitVersion=$release -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*}"
done
build_program "$here/extras" coredns ./coredns
build_program "$here/sanity" csi-sanity github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity
build_program "$here/extras" helm helm.sh/helm/v3/cmd/helm \
  "-X helm.sh/helm/v3/internal/version.version=$(module_version "$here/extras" helm.sh/helm/v3)"
