#!/usr/bin/env bash
# Run the two commands that the README promises on machines that never saw the project: fresh roots made by mmdebstrap, entered
# in mount and PID namespaces of their own. Needs root and mmdebstrap.
#
# usage: run.sh [--keep] SUITE...     such as bookworm trixie; the last commit is what gets cloned
#
# Environment: TARGETS (default "demo demo test"), WORK (a directory for the roots), and pip's own PIP_* variables, which are
# handed on; a file that PIP_CERT names and a directory that PIP_FIND_LINKS names are carried along.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
inside=$here/tools/fresh/inside.sh
targets=${TARGETS:-demo demo test}

fail() {
  echo "fresh: $*" >&2
  exit 1
}

keep=
if [ "${1:-}" = --keep ]; then
  keep=1
  shift
fi
[ $# -gt 0 ] || fail "name the suites, such as bookworm trixie"
[ "$(id -u)" = 0 ] || fail "needs root"
command -v mmdebstrap >/dev/null || fail "mmdebstrap is not installed (apt-get install mmdebstrap)"

work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
[ -n "$keep" ] || trap 'rm -rf --one-file-system "$work"' EXIT

# A file of this machine that pip needs, at the same path in the root.
carry() {
  local path=$1 root=$2
  [ -e "$path" ] || return 0
  mkdir -p "$root$(dirname "$path")"
  cp -aL "$path" "$root$(dirname "$path")/"
}

for suite in "$@"; do
  root=$work/$suite
  echo "==> $suite: a root with Python, make and git" >&2
  rm -rf --one-file-system "$root"
  mmdebstrap --quiet --variant=minbase --include=ca-certificates,git,make,python3 "$suite" "$root"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  if [ -n "${PIP_CERT:-}" ]; then carry "$PIP_CERT" "$root"; fi
  if [ -d "${PIP_FIND_LINKS:-}" ]; then carry "$PIP_FIND_LINKS" "$root"; fi
  git clone --quiet --no-hardlinks "$here" "$root/root/kvnode"
  if [ -e "$here/../shared/parity/parity.py" ]; then
    mkdir -p "$root/root/shared" && cp -a "$here/../shared/parity" "$root/root/shared/"
  fi
  cp "$inside" "$root/root/inside.sh"
  mapfile -t pip < <(env | grep '^PIP_' || true)
  for target in $targets; do
    echo "==> $suite: make $target" >&2
    begun=$SECONDS
    unshare --mount --pid --fork --kill-child --propagation private \
      bash "$inside" enter "$root" env -i HOME=/root TERM="${TERM:-dumb}" \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${pip[@]}" \
      bash /root/inside.sh make "$target" </dev/null || fail "$suite: make $target failed"
    echo "==> $suite: make $target passed in $((SECONDS - begun)) s" >&2
  done
done
