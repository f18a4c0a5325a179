"""The configuration of the libvirt daemons: the image's files, with what depends on this pod added
(``pkg/virt-launcher/virtwrap/util/libvirt_helper.go:SetupLibvirt``).
"""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kvnode.launcher import paths
from kvnode.launcher.daemons import Programs, driver_directory
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.ownership import QEMU_USER
from kvnode.launcher.pod.options import PodOptions

_QEMU_CONF = """\
stdio_handler = "logd"
vnc_listen = "0.0.0.0"
vnc_tls = 0
vnc_sasl = 0
user = "{user}"
group = "{user}"
dynamic_ownership = 1
remember_owner = 0
namespaces = [ ]
cgroup_controllers = [ ]
"""
_DAEMON_CONF = 'log_outputs = "3:stderr"\n'

# Verbosity of the launcher's log from which libvirt writes debug messages (``pkg/util/util.go``), and what is
# left out of them then, more of it the higher the verbosity.
_VERBOSE = 5
_FILTERS = (
    "3:remote 4:event 3:util.json 3:util.object 3:util.dbus 3:util.netlink 3:node_device 3:rpc 3:access"
)
_MORE_FILTERS = (
    " 3:util.threadjob 3:cpu.cpu",
    " 3:qemu.qemu_monitor",
    " 3:qemu.qemu_monitor_json 3:conf.domain_addr",
)


@dataclass(frozen=True)
class LibvirtFiles:
    """Which daemons run, and on which files."""

    programs: Programs
    daemon_config: Path
    log_daemon_config: Path
    uri: str

    def daemon(self) -> tuple[list[str], dict[str, str]]:
        """Command and environment of the daemon of domains."""
        environment = dict(os.environ)
        if self.programs.config == "libvirtd.conf":
            drivers = driver_directory(paths.LIBVIRT_RUN / "drivers")
            if drivers is not None:
                environment["LIBVIRT_DRIVER_DIR"] = str(drivers)
        return [self.programs.daemon, "-f", str(self.daemon_config)], environment

    def log_daemon(self) -> list[str]:
        """Command of the log daemon."""
        return [self.programs.log_daemon, "-f", str(self.log_daemon_config)]


def write_libvirt_files(options: PodOptions, programs: Programs) -> LibvirtFiles:
    """Write the files; raises OSError, or LauncherError for a user that libvirt would not talk to."""
    user = _qemu_user()
    qemu = paths.LIBVIRT_CONFIG / "qemu.conf"
    target = paths.PRIVATE / "libvirt/qemu.conf" if options.nonroot else qemu
    _write(target, _read(qemu, _QEMU_CONF.format(user=user)), _qemu_additions(os.environ))

    daemon = paths.LIBVIRT_RUN / "virtqemud.conf"
    additions = []
    if programs.config == "libvirtd.conf":  # it asks a policy daemon otherwise, and there is none
        additions.append('auth_unix_rw = "none"')
    filters = log_filters(options.log_filters, os.environ)
    if filters:
        additions.append(f'log_filters = "{filters}"')
    _write(daemon, _read(paths.LIBVIRT_CONFIG / programs.config, _DAEMON_CONF), additions)

    log_daemon = paths.LIBVIRT_CONFIG / "virtlogd.conf"
    if not log_daemon.exists():
        log_daemon = paths.LIBVIRT_RUN / "virtlogd.conf"
        _write(log_daemon, _DAEMON_CONF, [])
    scheme = "session" if options.nonroot else "system"
    return LibvirtFiles(programs, daemon, log_daemon, f"qemu+unix:///{scheme}?socket={programs.socket}")


def log_filters(asked: str, environment: Mapping[str, str]) -> str:
    """libvirt's ``log_filters``; "" for none."""
    if asked:
        return asked.replace('"', "").replace("\n", " ")
    try:
        level = int(environment.get("VIRT_LAUNCHER_LOG_VERBOSITY", ""))
    except ValueError:
        level = -1
    if level < _VERBOSE:
        if "LIBVIRT_DEBUG_LOGS" not in environment:
            return ""
        level = _VERBOSE + 5
    more = _MORE_FILTERS[: max(0, len(_MORE_FILTERS) + _VERBOSE - level)]
    return f"{_FILTERS}{''.join(more)} 1:*"


def _qemu_additions(environment: Mapping[str, str]) -> list[str]:
    additions = []
    if Path("/dev/hugepages").exists():
        additions.append('hugetlbfs_mount = "/dev/hugepages"')
    if environment.get("VIRTIOFSD_DEBUG_LOGS") == "1":
        additions.append("virtiofsd_debug = 1")
    if "SHARED_FILESYSTEM_PATHS" in environment:
        listed = ", ".join(f'"{path}"' for path in environment["SHARED_FILESYSTEM_PATHS"].split(":"))
        additions.append(f"shared_filesystems = [ {listed} ]")
    return additions


def _read(file: Path, default: str) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return default


def _write(file: Path, content: str, additions: list[str]) -> None:
    """Write the content with those additions that it does not have already (a container may start again)."""
    there = {line.strip() for line in content.splitlines()}
    lines = "".join(f"{line}\n" for line in additions if line not in there)
    if content and not content.endswith("\n"):
        content += "\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content + lines, encoding="utf-8", errors="surrogateescape")


def _qemu_user() -> str:
    """The name of QEMU's user: the image's, else this process's. Its libvirt closes the connections of a user, and
    of a group, that has no name; raises LauncherError then.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        own = pwd.getpwuid(user).pw_name
    except KeyError:
        raise LauncherError("NoAccount", f"user {user} needs an entry in /etc/passwd, for libvirt") from None
    try:
        grp.getgrgid(group)
    except KeyError:
        raise LauncherError("NoAccount", f"group {group} needs an entry in /etc/group, for libvirt") from None
    try:
        return pwd.getpwnam(QEMU_USER).pw_name
    except KeyError:
        return own
