#!/usr/bin/env bash
# Boot the demo machine, show where its memory goes, and shut it down.  usage: demo.sh KVNODE GUEST_DIRECTORY
set -euo pipefail

kvnode=$1
guest=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export KVNODE_STATE_DIR=${KVNODE_STATE_DIR:-$here/build/demo}

say() { printf '\n\033[1m$ %s\033[0m\n' "$*" >&2; }
run() { say "kvnode $*"; "$kvnode" "$@"; }

# Whatever happens from here on, no machine is left behind; one that an interrupted demo left is ended first.
"$kvnode" stop --now --forget demo >/dev/null 2>&1 || true
trap '"$kvnode" stop --now demo >/dev/null 2>&1 || true' EXIT
trap 'exit 130' INT TERM

run up "$here/examples/vmi-demo.yaml" --image "system=$guest/disk.qcow2" --wait --wait-for 'kvnode-guest: up'
run logs demo
run ps
run memory demo
run stop demo
"$kvnode" ps -o json | grep -q '"running": true' && { echo "demo: the machine still runs" >&2; exit 1; }
echo "demo: done" >&2
