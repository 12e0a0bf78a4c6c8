#!/usr/bin/env bash
# Installs the Debian 12 packages that Stoker needs, by group. Fast and silent if all are installed.
#
# usage: tools/deps.sh [--check] GROUP...
#   GROUP: build, test, bench, peers, loaders, accuracy, datasets, cluster, nightly, all
#   --check   install nothing; print missing packages and exit 1 if there are any
set -euo pipefail

build=(g++ cmake ninja-build ccache pkg-config make git
  libcpprest-dev libyaml-cpp-dev libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libcurl4-openssl-dev libexpat1-dev libssl-dev libboost-dev libboost-system-dev libexpected-dev libfmt-dev
  rapidjson-dev libgtest-dev libgmock-dev libhiredis-dev pybind11-dev python3-dev)
test=(clang-format-14 shellcheck yamllint redis-server nginx prometheus python3-boto3 python3-fsspec
  python3-numpy python3-pil python3-pytest python3-torch python3-hypothesis python3-yaml python3-venv python3-pip)
bench=(nginx strace)
peers=(memcached redis-server nginx fuse3 curl)
loaders=(python3-torchvision python3-dateutil python3-six python3-packaging python3-urllib3
  python3-charset-normalizer python3-attr)
accuracy=(python3-matplotlib)
datasets=(dataset-fashion-mnist fonts-dejavu-core fonts-dejavu-extra fonts-freefont-ttf fonts-crosextra-carlito
  fonts-roboto-unhinted fonts-open-sans fonts-sil-charis fonts-sil-doulos fonts-inter fonts-hack fonts-cmu
  fonts-croscore fonts-liberation)
nightly=(clang-16 clang-tidy-16 libclang-rt-16-dev)
cluster=(etcd-server containerd runc containernetworking-plugins buildah debootstrap
  iptables iproute2 procps util-linux mount e2fsprogs openssl curl bc gcc libc6-dev
  python3-venv python3-pip python3-yaml ca-certificates)

# Packages that would start a daemon, with its service. Only the tests may run these daemons.
declare -A service=([etcd-server]=etcd [containerd]=containerd [redis-server]=redis-server [nginx]=nginx
  [memcached]=memcached [prometheus]=prometheus)

# Other vendors ship these programs under other package names (Docker's containerd.io holds containerd and runc).
# Installing Debian's would remove theirs, so it is enough that the program exists.
declare -A program=([containerd]=containerd [runc]=runc)

say() { echo "deps: $*" >&2; }

group() {
  case $1 in
    build) printf '%s\n' "${build[@]}" ;;
    test) printf '%s\n' "${test[@]}" ;;
    bench) printf '%s\n' "${bench[@]}" ;;
    peers) printf '%s\n' "${peers[@]}" ;;
    loaders) printf '%s\n' "${loaders[@]}" ;;
    accuracy) printf '%s\n' "${accuracy[@]}" ;;
    datasets) printf '%s\n' "${datasets[@]}" ;;
    cluster) printf '%s\n' "${cluster[@]}" ;;
    nightly) printf '%s\n' "${nightly[@]}" ;;
    all) printf '%s\n' "${build[@]}" "${test[@]}" "${bench[@]}" "${peers[@]}" "${loaders[@]}" "${accuracy[@]}" "${datasets[@]}" "${cluster[@]}" "${nightly[@]}" ;;
    *) say "unknown group '$1' (build, test, bench, peers, loaders, accuracy, datasets, cluster, nightly, all)"; exit 2 ;;
  esac
}

missing() { # PACKAGE...: those that are neither installed nor present as a program
  local package
  comm -23 <(printf '%s\n' "$@" | sort -u) \
    <(dpkg-query --show --showformat '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | sed -n 's/^ii  *//p' | sort -u) |
    while read -r package; do
      [ -n "${program[$package]:-}" ] && command -v "${program[$package]}" >/dev/null && continue
      echo "$package"
    done
}

update_lists() { # registries fail sometimes: a few tries with growing delays
  local try
  for try in 1 2 3 4; do
    apt-get -qq -o Acquire::Retries=3 -o APT::Update::Error-Mode=any update && return
    say "apt-get update failed (try $try of 4)"
    sleep $((try * 5))
  done
  say "could not update every package list; continuing with the present lists"
}

# Debian's hook for "install, but start nothing"; this one exists only while installing.
forbid_service_start() {
  local policy=/usr/sbin/policy-rc.d
  [ ! -e $policy ] || return 0
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
  # shellcheck disable=SC2064
  trap "rm -f $policy" EXIT
}

disable_services() { # PACKAGE...: keeps new services from starting at the next boot
  local package
  [ -d /run/systemd/system ] || return 0
  for package in "$@"; do
    [ -z "${service[$package]:-}" ] || systemctl --quiet disable "${service[$package]}.service"
  done
}

main() {
  local check="" wanted=() absent=() name
  [ "${1:-}" = --check ] && { check=yes; shift; }
  [ $# -gt 0 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
  for name in "$@"; do mapfile -t -O ${#wanted[@]} wanted < <(group "$name"); done
  mapfile -t absent < <(missing "${wanted[@]}")
  [ ${#absent[@]} -gt 0 ] || return 0
  if [ -n "$check" ]; then printf '%s\n' "${absent[@]}"; return 1; fi
  [ "$(id -u)" = 0 ] || { say "needs root to install: ${absent[*]}"; exit 1; }
  say "installing ${absent[*]}"
  update_lists
  forbid_service_start
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
    install --yes --no-install-recommends "${absent[@]}" >/dev/null
  disable_services "${absent[@]}"
  mapfile -t absent < <(missing "${wanted[@]}")
  [ ${#absent[@]} = 0 ] || { say "still missing: ${absent[*]}"; exit 1; }
}
main "$@"
