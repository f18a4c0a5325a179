"""The state directory: one directory a VM, a lock beside each, and what happens to those that ended badly.

::

    DIR/vms/NAMESPACE_NAME/        vmi.json context.json domain.xml domain-adapted.xml record.json
                                   status.json (the launcher's) launcher.pid launcher.log logs/
                                   run/ etc/ lib/ log/ (laid over the VM's paths; gone when it has ended)
    DIR/vms/NAMESPACE_NAME.lock    held while a VM is started, stopped or cleaned up
    DIR/cache/                     verdicts on KVM, libvirt's capabilities of QEMU
    DIR/images/                    files taken out of OCI layouts

Whatever else lies there is left alone. A directory appears under its name only when it is complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kvnode.memory.processes import by_role, in_namespaces_of
from kvnode.standalone import records
from kvnode.standalone.errors import EXIT_ENVIRONMENT, EXIT_EXISTS, StandaloneError

#: Parts of a VM's directory that are laid over paths of its namespaces.
OVERLAID = ("run", "etc", "lib", "log")

#: Seconds that a VM's first process may live without its launcher before it is taken for a leftover.
ORPHAN_SECONDS = 3.0

_VM = re.compile(r"(?P<namespace>[a-z0-9][-a-z0-9.]*)_(?P<name>[a-z0-9][-a-z0-9.]*)")
_KILL_SECONDS = 10.0


@dataclass(frozen=True)
class VmDirectory:
    """One VM's directory; it need not exist."""

    path: Path
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """The VM for people: ``name``, or ``namespace/name`` outside ``default``."""
        return self.name if self.namespace == "default" else f"{self.namespace}/{self.name}"

    @property
    def domain(self) -> str:
        """Name of its domain."""
        return f"{self.namespace}_{self.name}"

    def process(self) -> records.Process | None:
        """Return the first process of its namespaces if that lives."""
        process = records.read_process(self.path / records.LAUNCHER_PID)
        return process if records.alive(process) else None

    def pids(self) -> dict[str, int]:
        """Return the VM's living processes by role, with ids of this machine."""
        process = self.process()
        return by_role(in_namespaces_of(process.pid)) if process else {}


class StateDirectory:
    """All VMs of one state directory."""

    def __init__(self, path: Path) -> None:
        """Use ``path``; nothing is made yet."""
        self.path = path.absolute()
        self.vms = self.path / "vms"
        self.cache = self.path / "cache"
        self.images = self.path / "images"

    def make(self) -> None:
        """Make the directories, for their owner alone; raises StandaloneError."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for directory in (self.vms, self.cache, self.images):
                directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StandaloneError(
                f"the state directory {self.path} cannot be used: {error.strerror}",
                exit_code=EXIT_ENVIRONMENT,
            ) from None

    def vm(self, namespace: str, name: str) -> VmDirectory:
        """Return a VM's directory, whether it exists or not."""
        return VmDirectory(self.vms / f"{namespace}_{name}", namespace, name)

    def all(self) -> list[VmDirectory]:
        """Return the VMs by namespace and name; foreign entries are passed over."""
        try:
            entries = sorted(self.vms.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StandaloneError(
                f"the state directory {self.path} cannot be read: {error.strerror}",
                exit_code=EXIT_ENVIRONMENT,
            ) from None
        found = []
        for entry in entries:
            match = _VM.fullmatch(entry.name)
            if match and not entry.name.endswith(".lock") and entry.is_dir() and not entry.is_symlink():
                found.append(VmDirectory(entry, match["namespace"], match["name"]))
        return sorted(found, key=lambda vm: (vm.namespace, vm.name))

    @contextmanager
    def lock(self, vm: VmDirectory, *, wait: float = 0.0) -> Iterator[None]:
        """Hold a VM's lock; raises StandaloneError (EXIT_EXISTS) when another holds it for ``wait`` seconds
        more.
        """
        end = time.monotonic() + wait
        path = self.vms / f"{vm.domain}.lock"
        while (descriptor := _locked(path)) is None:
            if time.monotonic() >= end:
                raise StandaloneError(
                    f"{vm.title} is being started or stopped by another kvnode", exit_code=EXIT_EXISTS
                )
            time.sleep(0.05)
        try:
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def building(self, vm: VmDirectory) -> Iterator[Path]:
        """Yield a directory that takes the VM's place when the block ends well; the lock must be held."""
        staging = self.vms / f".new-{vm.domain}"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(mode=0o700)
        try:
            yield staging
            shutil.rmtree(vm.path, ignore_errors=True)
            staging.replace(vm.path)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def tidy(self, vm: VmDirectory) -> None:
        """Clean up behind a VM whose processes died; the lock must be held. Does nothing to one that runs."""
        process = vm.process()
        if process is not None:
            if not _orphaned(vm, process):
                return
            kill(process)
        staging = self.vms / f".new-{vm.domain}"
        shutil.rmtree(staging, ignore_errors=True)
        if not vm.path.is_dir():
            return
        _conclude(vm)
        _keep_logs(vm)
        for part in (*OVERLAID, "passwd", "group"):
            _remove(vm.path / part)
        _remove(vm.path / records.LAUNCHER_PID)


def kill(process: records.Process) -> None:
    """Kill a VM's first process, and with it all others; returns when it is dead. Raises StandaloneError."""
    records.send_signal(process, signal.SIGKILL)
    end = time.monotonic() + _KILL_SECONDS
    while records.alive(process):
        if time.monotonic() > end:
            raise StandaloneError(f"process {process.pid} does not die", exit_code=EXIT_ENVIRONMENT)
        time.sleep(0.01)


def _locked(path: Path) -> int | None:
    """Return a descriptor that holds the lock; None when another holds it. Raises OSError."""
    # What lies there in the lock's place is neither followed nor changed.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever forgets a VM removes its lock: one that nobody else would find holds nothing off.
        if os.path.samestat(os.fstat(descriptor), path.lstat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _orphaned(vm: VmDirectory, process: records.Process) -> bool:
    """Tell whether the launcher is gone although the first process lives."""
    pids = by_role(in_namespaces_of(process.pid))
    if "launcher" in pids or "launcher-monitor" not in pids:
        return False
    try:
        age = time.time() - (vm.path / records.LAUNCHER_PID).stat().st_mtime
    except OSError:
        return False
    return age > ORPHAN_SECONDS


def _conclude(vm: VmDirectory) -> None:
    """Write the end of a VM whose launcher could not."""
    path = vm.path / "status.json"
    status = records.read_json(path) or {}
    if status.get("phase") in {"Succeeded", "Failed"}:
        return
    status |= {
        "phase": "Failed",
        "reason": "LauncherDied",
        "message": "the VM's launcher died, and everything of the VM with it",
        "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    with contextlib.suppress(OSError):
        records.write_json(path, status)


def _keep_logs(vm: VmDirectory) -> None:
    """Move the guest's and QEMU's logs out of what is about to be removed."""
    logs = vm.path / "logs"
    sources = [
        *(vm.path / "run/kubevirt-private").glob("*/virt-serial0-log*"),
        *(vm.path / "log/qemu").glob("*.log*"),
    ]
    for source in sources:
        if source.is_file() and not source.is_symlink():
            logs.mkdir(exist_ok=True)
            name = source.name.replace("virt-serial0-log", "serial.log").replace(
                f"{vm.domain}.log", "qemu.log"
            )
            with contextlib.suppress(OSError):
                os.replace(source, logs / name)  # noqa: PTH105


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
