"""What a machine must have before a cluster can run on it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.cluster.errors import ClusterError

# Program to Debian package.
CONTROL_PLANE_PROGRAMS = {"openssl": "openssl", "setpriv": "util-linux"}
NODE_PROGRAMS = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "ip": "iproute2",
    "nft": "nftables",
    "runc": "runc",
    "hostname": "hostname",
    "sysctl": "procps",
}
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
WATCHERS = 1024
"""inotify instances that a user may have: a node's programs take some twenty, and the kernel's default is 128."""
NODE_FILES = {"/usr/lib/cni/bridge": "containernetworking-plugins", "/bin/busybox": "busybox-static"}


def check(nodes: int) -> None:
    """See that the machine has what a cluster of so many nodes needs.

    Raises:
        ClusterError: everything that is missing, in one line, with the packages that have it.
    """
    programs = CONTROL_PLANE_PROGRAMS | (NODE_PROGRAMS if nodes else {})
    search = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    missing = {name: package for name, package in programs.items() if shutil.which(name, path=search) is None}
    if nodes:
        missing |= {name: package for name, package in NODE_FILES.items() if not Path(name).exists()}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise ClusterError(f"missing: {', '.join(missing)}; install the Debian packages: {packages}")
    if not nodes:
        return
    if os.geteuid() != 0:
        raise ClusterError(
            "nodes need root: they are made of namespaces and mounts (the control plane alone does not)"
        )
    if not 1 <= nodes <= 9:
        raise ClusterError("a cluster has one to nine nodes")
    absent = [path for path in ("/dev/net/tun", "/sys/fs/cgroup") if not Path(path).exists()]
    if absent:
        raise ClusterError(f"the kernel offers no {' and no '.join(absent)}, which nodes need")


def allow_watchers(say: Callable[[str], None], setting: Path = INOTIFY) -> None:
    """Let many nodes watch their files; a limit that is high enough is left alone, and none is ever lowered.

    Without it kubelets of a second cluster do not start, and say "too many open files".
    """
    limit = int(setting.read_text())
    if limit >= WATCHERS:
        return
    try:
        setting.write_text(str(WATCHERS))
    except OSError as error:
        say(f"fs.inotify.max_user_instances stays {limit}, which is few for nodes: {error.strerror}")
    else:
        say(f"fs.inotify.max_user_instances is {WATCHERS} now, after {limit}: each node takes some twenty")


def check_name(name: str) -> None:
    """Names become file, cgroup and context names.

    Raises:
        ClusterError: this one cannot.
    """
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?", name):
        raise ClusterError(f"{name!r}: a cluster's name is 1 to 20 small letters, digits and inner dashes")
