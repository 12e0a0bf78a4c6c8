# shellcheck shell=bash
# What every part of the cluster scripts needs: places, addresses, messages, waiting. Sourced, never run.
# shellcheck disable=SC2034 # most of it is read by the other parts

CACHE=${STOKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stoker}
STATE=${STOKER_CLUSTER_STATE:-$CACHE/cluster} # all that a cluster writes
MAX_NODES=3
NODE_DISK=${STOKER_CLUSTER_DISK:-40G} # of each node; a sparse file

# Hard-wired, for everything lies in this machine: nothing listens on, or routes to, a network of its own.
NET=10.240.0           # the nodes; the host is .1, node N is .1N
HOST_IP=$NET.1
SERVICE_CIDR=10.96.0.0/16
SERVICE_API_IP=10.96.0.1
SERVICE_DNS_IP=10.96.0.10
API_URL=https://$HOST_IP:6443
BRIDGE=stoker0         # links on the host: the bridge, and one veth a node
VETH=stoker-
CGROUP=stoker-node-    # cgroup of node N, in every controller

# Directories that each node has for itself; all others are shared with the host. hostPath volumes belong below these.
NODE_DIRS=(/var/lib /var/log /var/cache /mnt /srv /tmp)

pod_cidr() { echo "10.244.$1.0/24"; }
node_ip() { echo "$NET.1$1"; }

STARTED=${STOKER_STARTED:-$EPOCHREALTIME} # who calls us may count from its own beginning
log() { printf '[%5.0f s] %s\n' "$(bc <<<"$EPOCHREALTIME - $STARTED")" "$*" >&2; }
die() { echo "cluster: $*" >&2; exit 1; }

wait_for() { # SECONDS WHAT COMMAND...: until COMMAND succeeds
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
