"""Threads of QEMU, out of /proc, and how they are scheduled (proc(5), sched(7))."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from kvnode.agent.errors import AgentError
from kvnode.agent.processes import PROC, descendants

_VCPU = re.compile(r"CPU (\d+)/KVM")
_MOST_CPUS = 4096

VCPU_PRIORITY, TIMER_PRIORITY = 1, 2
"""Of SCHED_FIFO (``pkg/hypervisor/kvm/realtime.go:58-70``, ``runtime.go:201-206``)."""


def qemu_of(monitor: int, proc: Path = PROC) -> int | None:
    """PID of the QEMU below a launcher's monitor; None when there is none (any more)."""
    return next((pid for pid, name in descendants(monitor, proc) if name.startswith("qemu")), None)


def name_of(thread: int, proc: Path = PROC) -> str:
    """Name of a thread; "" when it is gone."""
    try:
        return (proc / str(thread) / "comm").read_text().rstrip("\n")
    except OSError:
        return ""


def is_vcpu(name: str) -> bool:
    """Whether a thread of that name runs the guest."""
    return _VCPU.fullmatch(name) is not None


def vcpus(pid: int, proc: Path = PROC) -> dict[int, int]:
    """Threads of QEMU's that run the guest, by the number of the virtual CPU."""
    try:
        threads = [int(entry.name) for entry in (proc / str(pid) / "task").iterdir()]
    except OSError:
        return {}
    names = {thread: _VCPU.fullmatch(name_of(thread, proc)) for thread in threads}
    return {int(found[1]): thread for thread, found in names.items() if found is not None}


def timer_of(pid: int, proc: Path = PROC) -> int | None:
    """PID of the kernel's thread that plays a guest's interval timer; None where there is none.

    It is named after QEMU's PID as QEMU's own PID namespace has it.
    """
    try:
        lines = (proc / str(pid) / "status").read_text().splitlines()
        inside = next(line for line in lines if line.startswith("NSpid:")).split()[-1]
        others = [entry for entry in proc.iterdir() if entry.name.isdigit()]
    except (OSError, StopIteration):
        return None
    wanted = f"kvm-pit/{inside}"
    return next((int(entry.name) for entry in others if name_of(int(entry.name), proc) == wanted), None)


def run_in_real_time(threads: Iterable[int], priority: int) -> None:
    """Have threads run before all that are not real-time; raises AgentError."""
    for thread in threads:
        try:
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority))
        except ProcessLookupError:
            continue
        except OSError as error:
            raise AgentError(
                f"spec.domain.cpu.realtime: thread {thread} cannot be scheduled first in, first out with priority "
                f"{priority}: {error.strerror}; the agent needs CAP_SYS_NICE"
            ) from error


def share_cpus(thread: int, example: int) -> None:
    """Have a thread run where another does; raises AgentError."""
    try:
        os.sched_setaffinity(thread, os.sched_getaffinity(example))
    except ProcessLookupError:
        return
    except OSError as error:
        raise AgentError(f"thread {thread} cannot be bound to a guest's CPUs: {error.strerror}") from error


def chosen(threads: Mapping[int, int], mask: str) -> list[int]:
    """Threads of the virtual CPUs that a mask of libvirt's chooses (``0-3,^1``); "" chooses all.

    Raises:
        AgentError: the mask is none.
    """
    if not mask.strip():
        return list(threads.values())
    wanted, unwanted = read_mask(mask)
    return [thread for number, thread in threads.items() if number in wanted - unwanted]


def read_mask(mask: str) -> tuple[set[int], set[int]]:
    """CPUs that a mask chooses, and those that it takes out again; raises AgentError."""
    wanted: set[int] = set()
    unwanted: set[int] = set()
    for part in mask.split(","):
        found = re.fullmatch(r"(\^?)([0-9]{1,9})(?:-([0-9]{1,9}))?", part.strip(), re.ASCII)
        first = int(found[2]) if found else -1
        last = int(found[3]) if found and found[3] else first
        if found is None or not first <= last <= _MOST_CPUS or (found[1] and found[3]):
            raise AgentError(
                f"spec.domain.cpu.realtime.mask: must be numbers and ranges of virtual CPUs (0-3,^1), not {mask!r}"
            )
        (unwanted if found[1] else wanted).update(range(first, last + 1))
    return wanted, unwanted
