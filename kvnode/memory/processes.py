"""Which processes belong to a VM, and what each is for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

#: Roles in the order in which a report lists them.
ROLES = (
    "launcher-monitor",
    "launcher",
    "virtlogd",
    "virtqemud",
    "qemu",
    "swtpm",
    "virtiofsd",
    "passt",
    "other",
)

_PROGRAMS = {
    "virtlogd": "virtlogd",
    "virtqemud": "virtqemud",
    "libvirtd": "virtqemud",
    "qemu-kvm": "qemu",
    "swtpm": "swtpm",
    "swtpm_setup": "swtpm",
    "virtiofsd": "virtiofsd",
    "passt": "passt",
    "virt-launcher": "launcher",
    "virt-launcher-monitor": "launcher-monitor",
}
_LAUNCHER_MODULE = "kvnode.launcher"
_MONITOR_FILE = "kvnode/launcher/monitor.py"


@dataclass(frozen=True)
class VmProcess:
    """A living process of a VM."""

    pid: int
    role: str
    command: str
    """Name of the program, or of the Python module that it runs."""


def role_of(arguments: list[str]) -> str:
    """Return the role that a command line stands for."""
    program = os.path.basename(arguments[0]) if arguments else ""  # noqa: PTH119 - no path of this file system
    if program in _PROGRAMS:
        return _PROGRAMS[program]
    if program.startswith("qemu-system-"):
        return "qemu"
    if program.startswith("python"):
        if any(argument.endswith(_MONITOR_FILE) for argument in arguments[:6]):
            return "launcher-monitor"
        if ("-m", _LAUNCHER_MODULE) in pairwise(arguments[:6]):
            return "launcher"
        # An entry point is a script that the interpreter is given, after its options.
        script = next((argument for argument in arguments[1:6] if not argument.startswith("-")), "")
        return _PROGRAMS.get(os.path.basename(script), "other")  # noqa: PTH119
    return "other"


def in_namespaces_of(
    pid: int, proc: Path = Path("/proc"), among: Iterable[int] | None = None
) -> Iterator[VmProcess]:
    """Yield the living processes in the PID namespace of ``pid``, this one included.

    Processes that end meanwhile are left out; none are yielded when ``pid`` itself is gone. ``among`` spares who
    asks for many VMs to have all processes looked at for each.
    """
    namespace = _namespace(proc / str(pid))
    if namespace is None:
        return
    entries = proc.iterdir() if among is None else (proc / str(one) for one in among)
    for entry in entries:
        if not entry.name.isdigit() or _namespace(entry) != namespace:
            continue
        arguments = _command_line(entry)
        if arguments:  # a zombie has none
            role = role_of(arguments)
            command = Path(_MONITOR_FILE).name if role == "launcher-monitor" else _command(arguments)
            yield VmProcess(int(entry.name), role, command)


def by_namespace(proc: Path = Path("/proc")) -> dict[str, list[int]]:
    """PIDs of all processes in sight, by the name of their PID namespace (namespaces(7))."""
    found: dict[str, list[int]] = {}
    with os.scandir(proc) as entries:
        for entry in entries:
            if entry.name.isdigit() and (namespace := _namespace(Path(entry.path))):
                found.setdefault(namespace, []).append(int(entry.name))
    return found


def by_role(processes: Iterable[VmProcess]) -> dict[str, int]:
    """Return role to process id; of several with one role the lowest id."""
    found: dict[str, int] = {}
    for process in sorted(processes, key=lambda p: p.pid):
        if process.role != "other":
            found.setdefault(process.role, process.pid)
    return dict(sorted(found.items(), key=lambda item: ROLES.index(item[0])))


def _namespace(entry: Path) -> str | None:
    try:
        return str((entry / "ns/pid").readlink())
    except OSError:
        return None


def _command_line(entry: Path) -> list[str]:
    try:
        raw = (entry / "cmdline").read_bytes()
    except OSError:
        return []
    return raw.decode(errors="replace").rstrip("\0").split("\0") if raw else []


def _command(arguments: list[str]) -> str:
    program = Path(arguments[0]).name
    for before, module in pairwise(arguments):
        if before == "-m" and program.startswith("python"):
            return module
    return program
