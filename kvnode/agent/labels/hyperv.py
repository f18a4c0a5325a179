"""Which of Hyper-V's interfaces KVM gives to guests (``node-labeller/kvm-caps-info-plugin_amd64.go``)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capability:
    """How KVM tells that it has a feature: an extension, where there is one for it, else an MSR."""

    name: str
    extension: int | None = None
    """Number of KVM_CHECK_EXTENSION, from ``linux/kvm.h``."""
    msr: int | None = None


CAPABILITIES = (
    Capability("base", extension=44),
    Capability("time", extension=96),
    Capability("vpindex", extension=149, msr=0x40000002),
    Capability("tlbflush", extension=155),
    Capability("ipi", extension=161),
    Capability("synic", extension=123, msr=0x40000080),
    Capability("synic2", extension=148, msr=0x40000080),
    Capability("frequencies", msr=0x40000022),
    Capability("reset", msr=0x40000003),
    Capability("runtime", msr=0x40000010),
    Capability("synictimer", msr=0x400000B0),
    Capability("reenlightenment", msr=0x40000106),
)


def capabilities(msrs: Collection[int], check_extension: Callable[[int], int]) -> list[str]:
    """Names of the features that KVM has.

    ``msrs`` are those that it lists; ``check_extension`` answers more than 0 for an extension that is there. One that
    cannot be asked after (OSError) is not there.
    """
    return [one.name for one in CAPABILITIES if _has(one, msrs, check_extension)]


def _has(one: Capability, msrs: Collection[int], check_extension: Callable[[int], int]) -> bool:
    if one.extension is None:
        return one.msr in msrs
    try:
        return check_extension(one.extension) > 0
    except OSError:
        return False
