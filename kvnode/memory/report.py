"""The memory report of one VM, as plain data; every size is in bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["within", "over", "no share"]


@dataclass(frozen=True)
class ProcessMemory:
    """One line of the report."""

    role: str
    """``launcher-monitor``, ``launcher``, ``virtqemud``, ``virtlogd``, ``qemu``, ``swtpm``, ``virtiofsd`` or
    ``other``.
    The guest's RAM and page tables are not in ``qemu``'s line: the report has fields for them."""

    pid: int
    command: str
    """Name of the program file."""

    resident: int
    """Resident set now."""

    proportional: int
    """Proportional set size now: shared pages are divided among their users."""

    peak: int
    """Highest resident set so far (VmHWM); for QEMU with the guest's RAM now taken out, so an estimate."""

    share: int
    """What the request holds for this role; 0 when nothing is held for it."""

    terms: tuple[str, ...]
    """The terms of the overhead that make up ``share``."""

    verdict: Verdict
    """``within``: the proportional size now is at most the share."""


@dataclass(frozen=True)
class MemoryReport:
    """Where a VM's memory goes."""

    namespace: str
    name: str
    domain_type: str
    guest_size: int
    """RAM that the guest has."""

    guest_resident: int
    """Of it, what is backed by memory now."""

    guest_backing: str
    """``anonymous``, ``memfd`` or ``hugepages``."""

    processes: tuple[ProcessMemory, ...]
    page_tables: int
    """Page tables of the VM's processes (VmPTE)."""

    page_tables_share: int
    overhead_used: int
    """Proportional sizes of all processes without the guest's RAM, and page tables."""

    overhead_requested: int
    """What the formula asks for over the guest's memory."""

    headroom: int
    """Requested less used; negative when the overhead is overrun."""

    verdict: Verdict
    unassigned: tuple[tuple[str, int], ...]
    """Terms of the overhead that no process here stands for (name, bytes)."""

    def as_dict(self) -> dict[str, Any]:
        """Return the report ready for JSON."""
        return asdict(self)
