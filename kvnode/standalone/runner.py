"""Standalone mode's entry: start, list, stop and look into virtual machines of this machine.

Everything here works on one state directory. No libvirt binding is needed in the calling process: the launcher beside
each VM holds the connection, and what it knows is read from the VM's files and from /proc.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvnode.standalone.errors import StandaloneError
from kvnode.standalone.model import Progress, StartOptions, StopResult, VmInfo

if TYPE_CHECKING:
    from kvnode.memory.report import MemoryReport

__all__ = ["Progress", "Runner", "StandaloneError", "StartOptions", "StopResult", "VmInfo", "default_state_dir"]


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
        raise NotImplementedError

    def start(self, manifest: Mapping[str, Any], options: StartOptions | None = None) -> VmInfo:
        """Start the VM of a VirtualMachineInstance (or of a VirtualMachine's template) and follow it to Running.

        ``manifest`` is not changed. Raises StandaloneError when the manifest is invalid or asks for what standalone
        mode does not have (``field`` says where), when the VM runs already (``EXIT_EXISTS``), when this machine lacks
        something (``EXIT_ENVIRONMENT``) or when the VM did not come to run. On an error, and on KeyboardInterrupt,
        nothing of the VM is left running.
        """
        raise NotImplementedError

    def list_vms(self, *, ended: bool = True) -> list[VmInfo]:
        """Return the VMs by namespace and name, after cleaning up behind those whose processes died.

        ``ended=False`` leaves out those that do not run.
        """
        raise NotImplementedError

    def get(self, name: str) -> VmInfo:
        """Return one VM; raises StandaloneError with EXIT_NOT_FOUND."""
        raise NotImplementedError

    def wait(self, name: str, phases: tuple[str, ...], timeout: float) -> VmInfo:
        """Wait until the VM's phase is one of ``phases`` or it does not run any more; raises when time is up."""
        raise NotImplementedError

    def stop(self, name: str, *, now: bool = False, timeout: float | None = None) -> StopResult:
        """Press the guest's power button, wait for its grace period (or ``timeout`` seconds), then end it.

        ``now`` ends it at once. The VM's record and logs stay until the next start of that name or ``forget``.
        """
        raise NotImplementedError

    def forget(self, name: str) -> None:
        """Remove what is kept of a VM that has ended; raises EXIT_EXISTS while it runs."""
        raise NotImplementedError

    def memory(self, name: str) -> MemoryReport:
        """Measure a running VM's processes against its request; raises EXIT_FAILED when it does not run."""
        raise NotImplementedError

    def console_path(self, name: str) -> Path:
        """Return the path, short enough to connect to, of the serial console's unix socket of a running VM."""
        raise NotImplementedError

    def log_paths(self, name: str) -> dict[str, Path]:
        """Return the logs there are: ``serial`` (what the guest wrote), ``launcher``, ``qemu``, ``libvirt``."""
        raise NotImplementedError

    def xml(self, name: str, *, adapted: bool = False) -> bytes:
        """Return the domain as converted or, with ``adapted``, as it was given to the installed libvirt."""
        raise NotImplementedError
