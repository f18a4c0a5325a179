"""Long commands in namespaces of their own: what they mount and start ends with them, and they with this process."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.images.cache import Say
from tools.images.errors import ImageError

#: Seconds between two lines of progress.
TELL_SECONDS = 20.0
_ALONE = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "--mount-proc"),
)
# The machine's name service and devices, and nothing else of it, are seen from within a root.
_ENTER = """\
set -eu
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
if [ -n "${PIP_CERT:-}" ]; then
  mkdir -p "$root$(dirname "$PIP_CERT")"
  touch "$root$PIP_CERT"
  mount --bind "$(realpath "$PIP_CERT")" "$root$PIP_CERT"
fi
if [ -d "${PIP_FIND_LINKS:-}" ]; then
  mkdir -p "$root$PIP_FIND_LINKS"; mount --bind "$PIP_FIND_LINKS" "$root$PIP_FIND_LINKS"
fi
cat /etc/resolv.conf >"$root/etc/resolv.conf"
exec chroot "$root" "$@"
"""


def run(what: str, command: Sequence[str], say: Say, log: Path, environment: Mapping[str, str]) -> None:
    """Run ``command`` to its end, with a line of progress now and then.

    Raises:
        ImageError: it failed; the message has the end of what it wrote.
    """
    begun = told = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*_ALONE, *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(environment),
        )
    try:
        while process.poll() is None:
            time.sleep(0.1)
            if time.monotonic() - told >= TELL_SECONDS:
                told = time.monotonic()
                say(f"{what}: {told - begun:.0f} s so far")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode != 0:
        lines = log.read_text(errors="replace").strip().splitlines()
        raise ImageError("\n  ".join([f"{what} failed:", *lines[-15:]]))


def run_inside(root: Path, what: str, command: Sequence[str], say: Say, log: Path) -> None:
    """Run ``command`` as root inside the root file system ``root``.

    Raises:
        ImageError: it failed.
    """
    environment = {
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
    }
    run(what, ["bash", "-c", _ENTER, "enter", str(root), *command], say, log, environment)
