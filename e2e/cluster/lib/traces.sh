# shellcheck shell=bash
# What a cluster can leave on the machine, one line each, sorted: lists from before and after can be compared.
# Sourced, never run.

# Namespaces and containers are in it by what holds them: a process of ours, or one in a cgroup of ours, and a cgroup
# cannot go before its last process. Mounts are those that the host sees, without those of a build that runs beside.
traces() {
  {
    ip -brief link | awk '{ print "link", $1 }'
    ip route | sed 's/^/route /'
    ip netns list | awk '{ print "netns", $1 }'
    { iptables-save || true; ip6tables-save || true; } 2>/dev/null | awk '/^-A/ { print "iptables", $0 }' # may be missing
    awk '$2 !~ /containers\/storage|buildah/ { print "mount", $2 }' /proc/self/mounts
    losetup --list --noheadings --output BACK-FILE | awk -v state="$STATE/" 'index($1, state) == 1 { print "loop", $1 }'
    find /sys/fs/cgroup -maxdepth 2 -name "$CGROUP*" -printf 'cgroup %P\n'
    for pid in $(owned_pids); do echo "process $pid"; done
    find "$STATE" -mindepth 1 -maxdepth 1 ! -name .lock ! -name pki ! -name log ! -name images -printf 'file %f\n'
  } | sort -u
}
