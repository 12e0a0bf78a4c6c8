# shellcheck shell=bash
# Shared by all cluster scripts: paths, addresses, messages, waiting. Sourced, never run.
# shellcheck disable=SC2034 # other scripts use most of these variables

CACHE=${STOKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stoker}
STATE=${STOKER_CLUSTER_STATE:-$CACHE/cluster} # everything that a cluster writes
MAX_NODES=3
NODE_DISK=${STOKER_CLUSTER_DISK:-40G} # disk size per node; a sparse file

# Fixed addresses, because all of them are inside this machine: no other network is used or reached.
NET=10.240.0           # the nodes; the host is .1, node N is .1N
HOST_IP=$NET.1
SERVICE_CIDR=10.96.0.0/16
SERVICE_API_IP=10.96.0.1
SERVICE_DNS_IP=10.96.0.10
API_URL=https://$HOST_IP:6443
BRIDGE=stoker0         # links on the host: the bridge, and one veth per node
VETH=stoker-
CGROUP=stoker-node-    # cgroup of node N, in every controller

# Directories that each node has for itself; it shares all others with the host. hostPath volumes must be below these.
NODE_DIRS=(/var/lib /var/log /var/cache /mnt /srv /tmp)

pod_cidr() { echo "10.244.$1.0/24"; }
node_ip() { echo "$NET.1$1"; }

STARTED=${STOKER_STARTED:-$EPOCHREALTIME} # a caller can set its own start time
log() { printf '[%5.0f s] %s\n' "$(bc <<<"$EPOCHREALTIME - $STARTED")" "$*" >&2; }
die() { echo "cluster: $*" >&2; exit 1; }

wait_for() { # SECONDS WHAT COMMAND...: waits until COMMAND succeeds
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || die "timed out waiting for $what; see $STATE/log"
    sleep 0.1
  done
}

render() { # TEMPLATE [KEY=VALUE...]: prints the file of config/ with every @KEY@ replaced
  local file=$HERE/config/$1 pair script=""
  shift
  for pair in HOST_IP="$HOST_IP" DNS_IP="$SERVICE_DNS_IP" "$@"; do script+="s|@${pair%%=*}@|${pair#*=}|g;"; done
  sed "$script" "$file"
}

kubectl() { "$K8S_BIN/kubectl" --kubeconfig "$STATE/admin.kubeconfig" "$@"; }
