#!/usr/bin/env bash
# Install what tools/setup/debian-packages.txt lists and this machine lacks. With nothing missing it asks no one.
#
# usage: debian.sh [--list | --missing]     --list names the packages for this release, --missing those to install
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
  echo "setup: $*" >&2
  exit 1
}

[ -r /etc/os-release ] || fail "this is no Debian (no /etc/os-release): install what $here/debian-packages.txt lists by hand"
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-unknown}")
command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
  fail "no apt-get here: install what $here/debian-packages.txt lists by hand"

wanted() {
  local name releases
  while read -r name releases; do
    case "$name" in '' | '#'*) continue ;; esac
    case " ${releases:-$release} " in *" $release "*) echo "$name" ;; esac
  done <"$here/debian-packages.txt"
}

missing() {
  local have
  have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | sort -u)
  wanted | sort | comm -23 - <(echo "$have")
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "root is needed for: $*  (no sudo here: run it as root)"
  fi
}

case "${1:-}" in
  --list) wanted && exit ;;
  --missing) missing && exit ;;
  '') ;;
  *) fail "usage: debian.sh [--list | --missing]" ;;
esac

mapfile -t packages < <(missing)
if [ ${#packages[@]} = 0 ]; then
  exit 0
fi
echo "setup: installing ${#packages[@]} Debian packages: ${packages[*]}" >&2
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
install=("${apt[@]}" install --no-install-recommends "${packages[@]}")
# The lists may be absent or older than the mirror: ask for new ones only when these do not do.
if ! as_root "${install[@]}" </dev/null; then
  as_root "${apt[@]}" update </dev/null
  as_root "${install[@]}" </dev/null || fail "apt-get could not install: ${packages[*]}"
fi
