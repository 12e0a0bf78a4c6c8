#!/usr/bin/env bash
# The first process in a node's namespaces. Mounts the node's own directories, then becomes the pause program.
# usage: node-init.sh NODE_NAME NODE_DIR PROGRAM_DIR PAUSE DIRECTORY...
set -e
hostname "$1"
node=$2 programs=$3 pause=$4
shift 4
mount --make-rshared /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/node /run/kube /run/bin /run/lock
install "$pause" /run/pause
mount --rbind "$node" /run/node
mount --bind "$node/etc" /run/kube
mount --bind "$programs" /run/bin
for directory in "$@"; do
  mkdir -p "/run/node/fs$directory" "$directory"
  mount --bind "/run/node/fs$directory" "$directory"
done
chmod 1777 /tmp
touch /run/node/booted
umount -l /run/node
exec /run/pause
