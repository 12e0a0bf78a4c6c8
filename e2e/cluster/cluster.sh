#!/usr/bin/env bash
# A real Kubernetes cluster of one to three nodes on one machine, from plain binaries: no systemd, no Docker engine.
#
# The control plane runs on the host. A node is a set of namespaces around one init process, with its own /run,
# /var/lib, /var/log, /mnt, /srv and /tmp, so that a hostPath volume is local to the node. `down` removes every trace.
set -Eeuo pipefail
trap 'echo "cluster.sh: ${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND" >&2' ERR
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
# shellcheck source=e2e/cluster/lib/common.sh
. "$HERE/lib/common.sh"
# shellcheck source=e2e/cluster/lib/programs.sh
. "$HERE/lib/programs.sh"
# shellcheck source=e2e/cluster/lib/processes.sh
. "$HERE/lib/processes.sh"
# shellcheck source=e2e/cluster/lib/keys.sh
. "$HERE/lib/keys.sh"
# shellcheck source=e2e/cluster/lib/control_plane.sh
. "$HERE/lib/control_plane.sh"
# shellcheck source=e2e/cluster/lib/node.sh
. "$HERE/lib/node.sh"
# shellcheck source=e2e/cluster/lib/images.sh
. "$HERE/lib/images.sh"
# shellcheck source=e2e/cluster/lib/faults.sh
. "$HERE/lib/faults.sh"
# shellcheck source=e2e/cluster/lib/traces.sh
. "$HERE/lib/traces.sh"
K8S_BIN=$(program_dir "$HERE/k8s")
EXTRAS_BIN=$(program_dir "$HERE/extras")
export KUBECONFIG=$STATE/admin.kubeconfig

usage() {
  cat <<'U'
usage: cluster.sh COMMAND
  up [N]                     start or repair a cluster of N nodes (1 to 3; default: as many as there are, or 1)
  down                       stop everything and delete all but keys, logs and exported images
  status                     processes, memory, nodes
  load-image NAME|TAR...     a buildah image, or a docker-archive, into every node
  kubectl ARG... | helm ARG...   as cluster-admin
  env                        exports for a shell: eval "$(cluster.sh env)"
  shell N [COMMAND...]       run a command inside a node
  traces                     prints what a cluster may have left on the machine: the same before `up` and after `down`
faults
  node-kill N                power cut
  node-start N [wipe]        boot it again; wipe: with an empty disk
  signal N DAEMON SIGNAL     DAEMON: containerd, kubelet or kube-proxy
  apiserver stop [SIGNAL] | start    SIGNAL: KILL unless told
  link N up|down             the node's cable
  drop A B [SHARE]           all packets between two nodes, or a share of them (0..1)
  rate N RATE                both ways, for example 10mbit
  disk N SIZE DIRECTORY      a small disk, for example 64m, on a directory of a node
  heal                       undo link, drop, rate and disk on all nodes
U
}

up() {
  local have want n
  have=$(node_numbers | wc -l)
  want=${1:-$((have ? have : 1))}
  [[ $want =~ ^[0-9]+$ && $want -ge 1 && $want -le "$MAX_NODES" ]] || die "1 to $MAX_NODES nodes, not '$want'"
  [ "$(id -u)" = 0 ] || die "needs root: it makes namespaces"
  "$HERE/build.sh"
  mkdir -p "$STATE/run" "$STATE/log"
  make_keys
  load_modules
  start_bridge
  start_apiserver
  make_pause_image
  for n in $(seq "$want"); do boot_node "$n"; done
  wait_for 60 "the API server" api_ready
  log "API server ready, $want node(s) booted"
  start_controllers
  for n in $(seq "$want"); do join_node "$n"; done
  start_dns
  wait_for 60 "namespace default" namespace_ready
  wait_for 60 CoreDNS dns_ready
  for n in $(seq "$want"); do
    wait_for 60 "node $n" node_ready "$n"
    wait_for 30 "kube-proxy of node $n" proxy_ready "$n"
  done
  log "$want node(s) ready"
}

down() {
  local n
  stop_all
  wait_for 20 "processes to end" none_left
  for n in $(seq "$MAX_NODES"); do
    wait_for 20 "cgroups of node $n to empty" remove_cgroups "$n"
    ip link delete "$VETH$n" 2>/dev/null || true            # usually gone with its namespace
    ip route delete "$(pod_cidr "$n")" 2>/dev/null || true  # usually gone with its link
  done
  for n in $(node_numbers); do remove_disk "$n"; done
  wait_for 20 "disks to be released" disks_released # the kernel ends namespaces shortly after their processes
  ip link delete "$BRIDGE" 2>/dev/null || true # fails if no cluster ran
  ! grep -q " $STATE/" /proc/self/mounts || die "mounts below $STATE remain"
  rm -rf "$STATE"/node-* "$STATE/etcd" "$STATE/run" "$STATE/Corefile" "$STATE"/*.kubeconfig
  log "down"
}

process_status() { # LABEL PID
  if [ -n "$2" ]; then echo "$1: pid $2, $(resident_memory "$2")"; else echo "$1: not running"; fi
}
status() {
  local name n
  for name in etcd apiserver controller-manager scheduler coredns; do
    process_status "$name" "$(pid_of "$name" || true)" # empty when it does not run
  done
  for n in $(node_numbers); do
    for name in containerd kubelet kube-proxy; do
      process_status "node-$n $name" "$(daemon_pid "$n" "$name" || true)" # likewise
    done
  done
  echo "memory of all: $(total_memory)"
  [ -z "$(pid_of apiserver)" ] || kubectl get nodes -o wide
}

command=${1:-help}
[ $# -eq 0 ] || shift
case $command in
  up | down | load-image | node-kill | node-start | apiserver)
    mkdir -p "$STATE"
    exec 9>"$STATE/.lock"
    flock 9 ;;
esac
case $command in
  up) up "$@" ;;
  down) down ;;
  status) status ;;
  load-image) for image in "$@"; do load_image "$image"; log "loaded $image"; done ;;
  kubectl) exec "$K8S_BIN/kubectl" "$@" ;;
  helm) exec "$EXTRAS_BIN/helm" "$@" ;;
  env) echo "export KUBECONFIG=$KUBECONFIG PATH=$K8S_BIN:$EXTRAS_BIN:\$PATH" ;;
  shell) in_node "$1" "${@:2}" || exit $? ;;
  node-kill) kill_node "$1" ;;
  node-start) start_node "$@" ;;
  traces) mkdir -p "$STATE"; traces ;;
  signal) signal_daemon "$@" ;;
  apiserver) apiserver "$@" ;;
  link) link "$@" ;;
  drop) drop "$@" ;;
  rate) rate "$@" ;;
  disk) disk "$@" ;;
  heal) heal ;;
  help | -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
