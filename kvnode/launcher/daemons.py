"""The log daemon and the libvirt daemon of one VM: their configuration, and their supervision.

``virtqemud`` where a distribution has it; else ``libvirtd`` with a driver directory that holds the QEMU
driver alone, which takes 4 to 12 MB less than with all drivers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.log import logger

#: Seconds before a daemon that ended is started again (``libvirt_helper.go:249``).
RESTART_SECONDS = 1.0

_QEMU_CONF = """\
user = "root"
group = "root"
stdio_handler = "logd"
dynamic_ownership = 1
remember_owner = 0
security_driver = "none"
namespaces = [ ]
cgroup_controllers = [ ]
swtpm_user = "root"
swtpm_group = "root"
"""
_DAEMON_CONF = """\
auth_unix_rw = "none"
unix_sock_group = "root"
log_outputs = "3:stderr"
"""
_LOG_DAEMON_CONF = 'log_outputs = "3:stderr"\n'


@dataclass(frozen=True)
class Programs:
    """The daemons of this machine and how they are run."""

    log_daemon: str
    daemon: str
    config: str
    """Name of the daemon's configuration file in /etc/libvirt."""

    socket: Path

    @property
    def uri(self) -> str:
        """URI of the libvirt daemon."""
        return f"qemu+unix:///system?socket={self.socket}"

    @property
    def log_socket(self) -> Path:
        """The log daemon's socket, without which no domain starts: libvirt has QEMU write its log by it."""
        return self.socket.with_name("virtlogd-sock")

    @classmethod
    def find(cls) -> Programs:
        """Look for the daemons; raises LauncherError naming the package when one is missing."""
        path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin"])
        log_daemon = shutil.which("virtlogd", path=path)
        if log_daemon is None:
            raise LauncherError("LibvirtMissing", "virtlogd is not installed (Debian: libvirt-daemon)")
        for name, address in (("virtqemud", "virtqemud-sock"), ("libvirtd", "libvirt-sock")):
            daemon = shutil.which(name, path=path)
            if daemon is not None:
                return cls(log_daemon, daemon, f"{name}.conf", paths.LIBVIRT_RUN / address)
        raise LauncherError(
            "LibvirtMissing", "neither virtqemud nor libvirtd is installed (Debian: libvirt-daemon)"
        )


def write_configuration(programs: Programs, huge_pages: bool) -> None:
    """Write the daemons' files to /etc/libvirt; raises OSError."""
    config = paths.LIBVIRT_CONFIG
    mount = 'hugetlbfs_mount = "/dev/hugepages"\n' if huge_pages else ""
    (config / "qemu.conf").write_text(_QEMU_CONF + mount, encoding="ascii")
    (config / programs.config).write_text(_DAEMON_CONF, encoding="ascii")
    (config / "virtlogd.conf").write_text(_LOG_DAEMON_CONF, encoding="ascii")


def takes_connections(socket_path: Path) -> bool:
    """Tell whether somebody listens at a Unix socket now."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(socket_path))
        except OSError:
            return False
        return True


def driver_directory(directory: Path) -> Path | None:
    """Return a directory with libvirtd's QEMU driver alone, made under ``directory``; None when it is not
    found.
    """
    for library in ("/usr/lib", "/usr/lib64"):
        for driver in Path(library).glob("*/libvirt/connection-driver/libvirt_driver_qemu.so"):
            directory.mkdir(parents=True, exist_ok=True)
            link = directory / driver.name
            if not link.is_symlink():
                link.symlink_to(driver)
            return directory
    return None


class Supervised:
    """A daemon that is started again when it ends."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        """Start ``command`` and watch it; raises LauncherError when it does not start at all."""
        self.name = name
        self.starts = 0
        self._command = command
        self._environment = environment
        self._stopping = threading.Event()
        self._between: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self._process = self._start()
        self._thread = threading.Thread(target=self._watch, name=f"{name}-watch", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Process id of the daemon as it runs now."""
        return self._process.pid

    def replace(self, between: Callable[[], None]) -> None:
        """Kill the daemon; ``between()`` is called when it has ended, before it is started again."""
        self._between = between
        with self._lock, contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def stop(self) -> None:
        """End the daemon: SIGTERM, and SIGKILL after five seconds."""
        self._stopping.set()
        with self._lock, contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        self._thread.join(5.0)
        if self._thread.is_alive():
            self._process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, cwd="/", restore_signals=True
            )
        except OSError as error:
            raise LauncherError(
                "LibvirtMissing", f"{self._command[0]} does not start: {error.strerror}"
            ) from None
        self.starts += 1
        return process

    def _watch(self) -> None:
        while True:
            status = self._process.wait()
            if self._stopping.is_set():
                return
            logger.warning("%s ended with status %d; starting it again", self.name, status)
            if self._stopping.wait(RESTART_SECONDS):
                return
            with self._lock:
                if self._stopping.is_set():
                    return
                between, self._between = self._between, None
                try:
                    if between is not None:
                        between()
                    self._process = self._start()
                except (LauncherError, OSError):
                    logger.exception("%s cannot be started again", self.name)
                    return


def start_daemons(programs: Programs) -> dict[str, Supervised]:
    """Start both daemons; returns them by role, ``virtlogd`` and ``virtqemud``."""
    environment = dict(os.environ)
    if programs.config == "libvirtd.conf":
        drivers = driver_directory(Path("/run/libvirt-drivers"))
        if drivers is not None:
            environment["LIBVIRT_DRIVER_DIR"] = str(drivers)
    config = paths.LIBVIRT_CONFIG
    daemon = [programs.daemon, "-f", str(config / programs.config)]
    log_daemon = [programs.log_daemon, "-f", str(config / "virtlogd.conf")]
    return {
        "virtqemud": Supervised("virtqemud", daemon, environment),
        "virtlogd": Supervised("virtlogd", log_daemon, dict(os.environ)),
    }
