# shellcheck shell=bash
# Injects network and process faults, and heals them, but injects no delays: the kernel lacks netem. Sourced, never run.

drop_one_way() { # N OTHER [MATCH...]: drops node N's packets from node OTHER and its pods
  local n=$1 other=$2
  shift 2
  in_node "$n" iptables -w -t raw -I PREROUTING -s "$(node_ip "$other"),$(pod_cidr "$other")" \
    -m comment --comment stoker-fault "$@" -j DROP
}
drop() { # A B [SHARE]
  local share=()
  [ -z "${3:-}" ] || share=(-m statistic --mode random --probability "$3")
  drop_one_way "$1" "$2" "${share[@]}"
  drop_one_way "$2" "$1" "${share[@]}"
}

rate() { # N RATE; both ways
  local shape=(root tbf rate "$2" burst 64kb latency 200ms)
  tc qdisc replace dev "$VETH$1" "${shape[@]}"
  in_node "$1" tc qdisc replace dev eth0 "${shape[@]}"
}

link() { ip link set "$VETH$1" "$2"; } # N up|down

# Mounts a small separate disk for the cache, so that tests can fill it. Pods started later see it.
disk() { # N SIZE DIRECTORY
  in_node "$1" mkdir -p "$3"
  in_node "$1" mount -t tmpfs -o "size=$2,mode=755" stoker-fault "$3"
}

signal_daemon() { # N DAEMON SIGNAL
  local pid
  pid=$(daemon_pid "$1" "$2") || die "$2 of node $1 is not running"
  kill "-$3" "$pid"
  # The nsenter process that runs the program stops together with it, so nsenter must be continued, too.
  [ "$3" != CONT ] || kill -CONT "$(pid_of "node-$1.$2")"
}

heal_node() { # N
  local n=$1 rule directory
  link "$n" up
  tc qdisc delete dev "$VETH$n" root 2>/dev/null || true # an error if there is none
  in_node "$n" tc qdisc delete dev eth0 root 2>/dev/null || true # likewise
  in_node "$n" iptables -t raw -S PREROUTING | sed -n '/stoker-fault/s/^-A/-D/p' | while read -ra rule; do
    in_node "$n" iptables -w -t raw "${rule[@]}" </dev/null
  done
  # A mount is listed at two paths, the directory and below the node's own files; one unmount removes both.
  # shellcheck disable=SC2016 # awk's fields
  while directory=$(in_node "$n" awk '$1 == "stoker-fault" { print $2; exit }' /proc/self/mounts) && [ -n "$directory" ]; do
    in_node "$n" umount -l "$directory"
  done
}
heal() {
  local n
  for n in $(node_numbers); do ! is_up "$n" || heal_node "$n"; done
}
