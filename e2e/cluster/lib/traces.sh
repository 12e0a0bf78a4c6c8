# shellcheck shell=bash
# Lists what a cluster can leave on the machine, one line each, sorted, to compare before and after.
# Sourced, never run.

# A remaining namespace or container shows up as a process of ours or as a cgroup of ours, because one of them keeps it
# alive. Mounts are those of the host, except those of a concurrent build.
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
