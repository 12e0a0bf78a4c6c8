# shellcheck shell=bash
# A node: mount, network, PID, UTS and IPC namespaces around one init process. Killing that process is a power cut.
# Sourced, never run.

node_numbers() { # numbers of all nodes with a disk, running or not
  local dir
  for dir in "$STATE"/node-*/; do
    dir=${dir%/}
    [ ! -d "$dir" ] || echo "${dir##*-}"
  done
}
init_pid() { local pid; pid=$(pid_of "node-$1") && child_of "$pid"; }
daemon_pid() { local pid; pid=$(pid_of "node-$1.$2") && child_of "$pid"; } # the parent is nsenter, outside the node
is_up() { [ -n "$(init_pid "$1")" ]; }

ENTER=(--mount --net --pid --uts --ipc)
in_node() { # N COMMAND...
  local pid
  pid=$(init_pid "$1") || die "node $1 is not running"
  shift
  nsenter --target "$pid" "${ENTER[@]}" -- "$@"
}
node_daemon() { # N NAME COMMAND...
  local n=$1 name=$2
  shift 2
  [ -z "$(daemon_pid "$n" "$name")" ] || return 0
  spawn "node-$n.$name" nsenter --target "$(init_pid "$n")" "${ENTER[@]}" -- "$@"
}

# Each node has its own file system, so it has its own capacity and free space, and one unlink deletes it. Deleting the
# files of unpacked images one by one takes up to a minute on a disk that discards on delete.
make_disk() { # N
  local dir=$STATE/node-$1
  mkdir -p "$dir/fs"
  ! mountpoint -q "$dir/fs" || return 0
  rm -rf "$dir/disk.img" "$dir"/fs/*
  truncate -s "$NODE_DISK" "$dir/disk.img"
  mkfs.ext4 -q -O ^has_journal -E lazy_itable_init=1,nodiscard "$dir/disk.img"
  mount -o loop,noatime "$dir/disk.img" "$dir/fs" || log "no loop device: node $1 shares the machine's disk"
}
remove_disk() { # N
  local dir=$STATE/node-$1
  if mountpoint -q "$dir/fs"; then
    # EXT4_IOC_SHUTDOWN without flush: skips unwritten data, which is discarded anyway.
    python3 -c 'import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))' "$dir/fs"
    wait_for 20 "the disk of node $1 to be free" umount "$dir/fs"
  fi
  rm -rf "$dir/fs" "$dir/disk.img"
}

disks_released() { ! losetup --list --noheadings --output BACK-FILE | grep -qF "$STATE/"; }

cgroup_dirs() { # N: prints the node's existing cgroup directories
  local dir
  for dir in /sys/fs/cgroup/*/"$CGROUP$1" "/sys/fs/cgroup/$CGROUP$1"; do [ ! -d "$dir" ] || echo "$dir"; done
}
make_cgroups() { # N; the kubelet demands that its root exists in every controller
  local root=/sys/fs/cgroup controller dir
  if [ -f $root/cgroup.controllers ]; then # version 2: a child gets only the controllers that its parent enables
    for controller in $(<$root/cgroup.controllers); do echo "+$controller" >$root/cgroup.subtree_control; done
    mkdir -p "$root/$CGROUP$1"
    return
  fi
  for controller in "$root"/*/; do
    dir=$controller$CGROUP$1
    mkdir -p "$dir"
    [ -f "$dir/cpuset.cpus" ] || continue
    cat "${controller}cpuset.cpus" >"$dir/cpuset.cpus"
    cat "${controller}cpuset.mems" >"$dir/cpuset.mems"
  done
}
remove_cgroups() { # N; fails while a dying process still holds one
  local dir
  for dir in $(cgroup_dirs "$1"); do find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null || continue; done
  [ -z "$(cgroup_dirs "$1")" ]
}

node_files() { # N
  local n=$1 etc=$STATE/node-$1/etc pki=$STATE/pki
  mkdir -p "$etc/cni"
  certificate "node-$n" "/O=system:nodes/CN=system:node:node-$n" "DNS:node-$n,IP:$(node_ip "$n")"
  install -m 600 "$pki/node-$n.key" "$etc/node.key"
  cp "$pki/node-$n.crt" "$etc/node.crt"
  cp "$pki/ca.crt" "$etc/ca.crt"
  kubeconfig "node-$n" "$etc/kubelet.kubeconfig"
  kubeconfig kube-proxy "$etc/kube-proxy.kubeconfig"
  : >"$etc/resolv.conf"
  render containerd.toml >"$etc/containerd.toml"
  render cni.conflist POD_CIDR="$(pod_cidr "$n")" >"$etc/cni/10-stoker.conflist"
  render kubelet.yaml CGROUP="$CGROUP$n" >"$etc/kubelet.yaml"
  render kube-proxy.yaml NODE="node-$n" >"$etc/kube-proxy.yaml"
}

# No default route: packets to other networks fail at once, nothing leaves this machine.
node_network() { # N
  local n=$1 other
  in_node "$n" ip link show eth0 >/dev/null 2>&1 && return
  ip link delete "$VETH$n" 2>/dev/null || true # a killed node's veth may still exist
  ip link add "$VETH$n" type veth peer name eth0 netns "$(init_pid "$n")"
  ip link set "$VETH$n" master "$BRIDGE" up
  in_node "$n" ip link set lo up
  in_node "$n" ip address add "$(node_ip "$n")/24" dev eth0
  in_node "$n" ip link set eth0 up
  in_node "$n" ip route add "$SERVICE_CIDR" dev eth0 # a local process needs some route before NAT comes into play
  for other in $(seq "$MAX_NODES"); do
    [ "$other" = "$n" ] || in_node "$n" ip route add "$(pod_cidr "$other")" via "$(node_ip "$other")"
  done
  in_node "$n" sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
  ip route replace "$(pod_cidr "$n")" via "$(node_ip "$n")"
}

containerd_ready() { in_node "$1" ctr version; }
boot_node() { # N: namespaces, network, containerd
  local n=$1 dir=$STATE/node-$1
  if ! is_up "$n"; then
    remove_cgroups "$n" || true # left by a recent power cut; make_cgroups reuses what is still there
    make_cgroups "$n"
    make_disk "$n"
    node_files "$n"
    rm -f "$dir/booted" "$STATE/run/node-$n."*
    spawn "node-$n" unshare --mount --propagation private --net --uts --ipc --pid --fork --kill-child=SIGKILL \
      --mount-proc bash "$HERE/config/node-init.sh" "node-$n" "$dir" "$K8S_BIN" "$PAUSE" "${NODE_DIRS[@]}"
    wait_for 10 "node $n to boot" test -e "$dir/booted"
  fi
  node_network "$n"
  node_daemon "$n" containerd containerd --config /run/kube/containerd.toml
  wait_for 20 "containerd of node $n" containerd_ready "$n"
  import_image "$n" "$PAUSE.tar" "$(basename "$PAUSE")"
}
join_node() { # N; needs the API server
  local n=$1
  node_daemon "$n" kubelet /run/bin/kubelet --config=/run/kube/kubelet.yaml \
    --kubeconfig=/run/kube/kubelet.kubeconfig --hostname-override="node-$n" --node-ip="$(node_ip "$n")"
  node_daemon "$n" kube-proxy /run/bin/kube-proxy --config=/run/kube/kube-proxy.yaml
}
# Ready, with a lease renewed since this kubelet started: a node that has just died still has status Ready.
node_ready() { # N
  local ready renewed started
  ready=$(kubectl get "node/node-$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') || return
  renewed=$(kubectl -n kube-node-lease get lease "node-$1" -o 'jsonpath={.spec.renewTime}') || return
  started=$(date -u -r "$STATE/run/node-$1.kubelet.pid" +%FT%T)
  [[ $ready = True && $renewed > $started ]]
}
proxy_ready() { in_node "$1" iptables -t nat -S KUBE-SERVICES | grep -q "$SERVICE_DNS_IP/32"; } # N

kill_node() { # N
  local n=$1 pid
  pid=$(init_pid "$n") || die "node $n is not running"
  kill -9 "$pid"
  wait_for 10 "the processes of node $n to end" is_gone "$pid"
  ip link delete "$VETH$n" 2>/dev/null || true # the namespace may have removed it already
}
start_node() { # N [wipe]
  ! is_up "$1" || die "node $1 is running"
  [ -d "$STATE/node-$1" ] || die "there is no node $1"
  [ "${2:-}" != wipe ] || remove_disk "$1"
  boot_node "$1"
  join_node "$1"
  wait_for 60 "node $1" node_ready "$1"
  wait_for 30 "kube-proxy of node $1" proxy_ready "$1"
}
