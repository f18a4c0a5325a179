"""Keeping a VM's helper threads off its own CPUs, and its virtual CPUs ahead of all else.

``pkg/hypervisor/kvm/runtime.go:150-325``, ``realtime.go:41-72``
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvnode.agent import threads
from kvnode.agent.cgroups import HOUSEKEEPING, Groups
from kvnode.agent.domain import Domain
from kvnode.agent.errors import AgentError
from kvnode.agent.processes import PROC
from kvnode.agent.vmi import Vmi, is_final, is_running, spec

logger = logging.getLogger(__name__)

_CONTROLLER = "cpuset"


def cpu_of(vmi: Vmi) -> Mapping[str, Any]:
    """``spec.domain.cpu``."""
    return (spec(vmi).get("domain") or {}).get("cpu") or {}


def isolates_helpers(vmi: Vmi) -> bool:
    """Whether all but the virtual CPUs is to run on a CPU of its own."""
    cpu = cpu_of(vmi)
    return bool(cpu.get("dedicatedCpuPlacement") and cpu.get("isolateEmulatorThread"))


def needs_scheduling(vmi: Vmi) -> bool:
    """Whether threads of the guest are scheduled in another way than the kernel's own."""
    cpu = cpu_of(vmi)
    return not is_final(vmi) and (bool(cpu.get("dedicatedCpuPlacement")) or cpu.get("realtime") is not None)


def isolate_helpers(groups: Groups, domain: Domain | None, proc: Path = PROC) -> None:
    """Move all threads but those of virtual CPUs to the CPUs that the domain has for them. Blocks.

    Raises:
        AgentError: the kernel refuses.
    """
    folder = groups.folder(_CONTROLLER)
    inside = folder / HOUSEKEEPING
    list_of_threads = "cgroup.threads" if groups.unified else "tasks"
    try:
        _make(folder, inside, unified=groups.unified)
        cpus = str((domain.spec("CPUTune", "EmulatorPin", "CPUSet") if domain else None) or "")
        if not cpus:
            return
        (inside / "cpuset.cpus").write_text(cpus)
        for thread in (folder / list_of_threads).read_text().split():
            if not threads.is_vcpu(threads.name_of(int(thread), proc)):
                _move(thread, inside / list_of_threads)
    except OSError as error:
        raise AgentError(
            f"spec.domain.cpu.isolateEmulatorThread: helper threads cannot be moved: {error.strerror}"
        ) from error


def _make(folder: Path, inside: Path, *, unified: bool) -> None:
    if inside.exists():
        return
    if unified:
        (folder / "cgroup.subtree_control").write_text(f"+{_CONTROLLER}")
    inside.mkdir()
    try:
        if unified:
            (inside / "cgroup.type").write_text("threaded")
        else:
            # A group of version 1 begins with no CPUs and no memory at all.
            for name in ("cpuset.mems", "cpuset.cpus"):
                (inside / name).write_text((folder / name).read_text().strip())
    except OSError:
        inside.rmdir()
        raise


def _move(thread: str, list_of_threads: Path) -> None:
    try:
        list_of_threads.write_text(thread)
    except ProcessLookupError:
        return  # it has ended meanwhile


def give_back(groups: Groups) -> None:
    """Put all threads back to where they were, and take the group away. Blocks; one that is gone is no error."""
    if not groups.unified and _CONTROLLER not in groups.folders:
        return
    folder = groups.folder(_CONTROLLER)
    inside = folder / HOUSEKEEPING
    list_of_threads = "cgroup.threads" if groups.unified else "tasks"
    try:
        for thread in (inside / list_of_threads).read_text().split():
            _move(thread, folder / list_of_threads)
        inside.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("%s: is left: %s", inside, error.strerror)


def schedule(vmi: Vmi, monitor: int, proc: Path = PROC) -> None:
    """Have the virtual CPUs run in real time where that is asked for, and the guest's timer beside the first. Blocks.

    Done again in each pass: virtual CPUs may have been plugged in.

    Raises:
        AgentError: the kernel refuses, or there is no QEMU yet that was to run in real time.
    """
    cpu = cpu_of(vmi)
    qemu = threads.qemu_of(monitor, proc)
    if qemu is None:
        if cpu.get("realtime") is None or is_running(vmi):
            return  # it has ended, and its domain's state will tell
        raise AgentError(
            "spec.domain.cpu.realtime: the VM has no QEMU process whose threads could be scheduled"
        )
    found = threads.vcpus(qemu, proc)
    realtime = cpu.get("realtime")
    if realtime is not None:
        mask = str(realtime.get("mask") or "")
        threads.run_in_real_time(threads.chosen(found, mask), threads.VCPU_PRIORITY)
    timer = threads.timer_of(qemu, proc) if cpu.get("dedicatedCpuPlacement") else None
    if timer is None:
        return
    if realtime is not None:
        threads.run_in_real_time([timer], threads.TIMER_PRIORITY)
    if 0 in found:
        threads.share_cpus(timer, found[0])
