"""Standalone mode's entry: start, list, stop and look into virtual machines of this machine.

Everything here works on one state directory. No libvirt binding is needed in the calling process: the
launcher beside each VM holds the connection, and what it knows is read from the VM's files and from /proc.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvnode.standalone import launch
from kvnode.standalone.accounting import measure_vm
from kvnode.standalone.errors import EXIT_EXISTS, EXIT_NOT_FOUND, StandaloneError
from kvnode.standalone.model import Progress, StartOptions, StopResult, VmInfo
from kvnode.standalone.start import Starter
from kvnode.standalone.state import OVERLAID, StateDirectory, VmDirectory
from kvnode.standalone.stop import stop_vm
from kvnode.standalone.view import describe, logs

if TYPE_CHECKING:
    from kvnode.memory.report import MemoryReport

__all__ = [
    "Progress",
    "Runner",
    "StandaloneError",
    "StartOptions",
    "StopResult",
    "VmInfo",
    "default_state_dir",
]

#: Seconds to wait for another kvnode that is at work on the same VM.
_LOCK_SECONDS = 10.0


def default_state_dir() -> Path:
    """``$XDG_STATE_HOME/kvnode``, or ``~/.local/state/kvnode`` where that variable is unset or relative."""
    home = os.environ.get("XDG_STATE_HOME", "")
    return (Path(home) if home.startswith("/") else Path("~/.local/state").expanduser()) / "kvnode"


class Runner:
    """The VMs of one state directory.

    Every method that takes ``name`` accepts ``name`` (namespace ``default``, or the only VM of that name) or
    ``namespace/name``. All raise :class:`StandaloneError` and nothing else that a user could cause.
    """

    def __init__(self, state_dir: Path | str | None = None, *, progress: Progress | None = None) -> None:
        """Use ``state_dir`` (made on the first start), telling ``progress`` of long steps."""
        self._state = StateDirectory(Path(state_dir) if state_dir is not None else default_state_dir())
        self._progress: Progress = progress or (lambda _step, _text: None)

    def start(self, manifest: Mapping[str, Any], options: StartOptions | None = None) -> VmInfo:
        """Start the VM of a VirtualMachineInstance (or of a VirtualMachine's template) and follow it to
        Running.

        ``manifest`` is not changed. Raises StandaloneError when the manifest is invalid or asks for what
        standalone mode does not have (``field`` says where), when the VM runs already (``EXIT_EXISTS``), when
        this machine lacks something (``EXIT_ENVIRONMENT``) or when the VM did not come to run. On an error,
        and on KeyboardInterrupt, nothing of the VM is left running.
        """
        vm = Starter(self._state, options or StartOptions(), self._progress).start(manifest)
        return describe(vm)

    def list_vms(self, *, ended: bool = True) -> list[VmInfo]:
        """Return the VMs by namespace and name, after cleaning up behind those whose processes died.

        ``ended=False`` leaves out those that do not run.
        """
        found = []
        for vm in self._state.all():
            info = self._look(vm)
            if info.running or ended:
                found.append(info)
        return found

    def get(self, name: str) -> VmInfo:
        """Return one VM; raises StandaloneError with EXIT_NOT_FOUND."""
        return self._look(self._find(name))

    def wait(self, name: str, phases: tuple[str, ...], timeout: float) -> VmInfo:
        """Wait until the VM's phase is one of ``phases`` or it does not run any more; raises
        when time is up.
        """
        vm = self._find(name)
        phase = launch.wait_for(vm, phases, timeout)
        if not phase:
            raise StandaloneError(f"{vm.title} was not {' or '.join(phases)} within {timeout:g} s")
        return self.get(name)

    def stop(self, name: str, *, now: bool = False, timeout: float | None = None) -> StopResult:
        """Press the guest's power button, wait for its grace period (or ``timeout`` seconds), then end it.

        ``now`` ends it at once. The VM's record and logs stay until the next start of that name or
        ``forget``.
        """
        vm = self._find(name)
        return stop_vm(self._state, vm, now=now, timeout=timeout, progress=self._progress)

    def forget(self, name: str) -> None:
        """Remove what is kept of a VM that has ended; raises EXIT_EXISTS while it runs."""
        vm = self._find(name)
        with self._state.lock(vm, wait=_LOCK_SECONDS):
            self._state.tidy(vm)
            if vm.process() is not None:
                raise StandaloneError(f"{vm.title} runs: stop it first", exit_code=EXIT_EXISTS)
            shutil.rmtree(vm.path, ignore_errors=True)
            (self._state.vms / f"{vm.domain}.lock").unlink(missing_ok=True)

    def memory(self, name: str) -> MemoryReport:
        """Measure a running VM's processes against its request; raises EXIT_FAILED when it does not run."""
        vm = self._find(name)
        process = vm.process()
        if process is None:
            raise StandaloneError(f"{vm.title} does not run, so there is nothing to measure")
        return measure_vm(vm, process.pid)

    def console_path(self, name: str) -> Path:
        """Return the path, short enough to connect to, of the serial console's unix socket of a
        running VM.
        """
        vm = self._find(name)
        info = describe(vm)
        if not info.running:
            raise StandaloneError(f"{vm.title} does not run, so there is no console")
        path = Path(info.console)
        if not path.exists():
            raise StandaloneError(
                f"{vm.title} has no serial console (spec.domain.devices.autoattachSerialConsole may be false)"
            )
        return path

    def log_paths(self, name: str) -> dict[str, Path]:
        """Return the logs there are: ``serial`` (what the guest wrote), ``launcher``, ``qemu``."""
        return logs(self._find(name))

    def xml(self, name: str, *, adapted: bool = False) -> bytes:
        """Return the domain as converted or, with ``adapted``, as it was given to the installed libvirt."""
        vm = self._find(name)
        file = "domain-adapted.xml" if adapted else "domain.xml"
        try:
            return (vm.path / file).read_bytes()
        except OSError:
            raise StandaloneError(
                f"{vm.title}: {file} is not there (yet)", exit_code=EXIT_NOT_FOUND
            ) from None

    def _look(self, vm: VmDirectory) -> VmInfo:
        """Return what a VM is, after cleaning up behind it if its processes died."""
        self._tidy(vm)
        info = describe(vm)
        if not info.running and (vm.path / OVERLAID[0]).exists():  # it died between the two lines above
            self._tidy(vm)
            info = describe(vm)
        return info

    def _tidy(self, vm: VmDirectory) -> None:
        """Clean up behind a VM unless somebody is at work on it."""
        try:
            with self._state.lock(vm):
                self._state.tidy(vm)
        except (StandaloneError, OSError):
            return

    def _find(self, name: str) -> VmDirectory:
        """Return the VM that ``name`` stands for; raises StandaloneError with EXIT_NOT_FOUND."""
        namespace, slash, short = name.rpartition("/")
        found = [
            vm for vm in self._state.all() if vm.name == short and vm.namespace == (namespace or vm.namespace)
        ]
        in_default = [vm for vm in found if vm.namespace == "default"]
        if len(found) > 1 and not slash and not in_default:
            where = ", ".join(f"{vm.namespace}/{vm.name}" for vm in found)
            raise StandaloneError(f"there are several of that name: {where}", exit_code=EXIT_NOT_FOUND)
        if not found:
            raise StandaloneError(
                f"there is no VM {name!r:.200} in {self._state.path}", exit_code=EXIT_NOT_FOUND
            )
        return found[0] if slash or not in_default else in_default[0]
