#!/usr/bin/env bash
# Both ends of the way into a fresh root. `enter ROOT COMMAND...` runs in new namespaces on the machine and changes into the
# root; `make TARGET` runs in the root.
set -euo pipefail

case "$1" in
  enter)
    root=$2
    shift 2
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    exec chroot "$root" "$@"
    ;;
  make)
    cd /root/kvnode
    exec make "$2"
    ;;
  *)
    echo "inside.sh: enter or make" >&2
    exit 2
    ;;
esac
