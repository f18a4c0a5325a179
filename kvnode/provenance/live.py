"""What a running guest can take, field by field: KubeVirt's live updates as data.

A rule names fields and what has to hold of the running instance and the wanted one. Fields without a rule
need a restart (``pkg/virt-controller/watch/vm/vm.go:2989``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from kvnode.api.quantity import Quantity

__all__ = ["RULES", "Condition", "Rule", "Verdict", "field_verdict"]

Json: TypeAlias = Mapping[str, Any]

_BLOCK = 2 * 2**20
_GIGANTIC_BLOCK = 2**30
_SMALLEST_GUEST = 2**30
"""Bytes: blocks of pluggable memory, on 1Gi huge pages too, and the least guest that has any."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the running guest can take a change, and why, or why not."""

    live: bool
    why: str


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that must hold for a change to be taken live."""

    holds: Callable[[Json, Json], bool]
    """Of the running and the wanted instance, both with their defaults."""
    otherwise: str
    """Why not, where it does not hold."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Fields that can change while the guest runs."""

    fields: tuple[str, ...]
    """Paths; what is below them counts too."""
    live: str
    """How the guest takes it."""
    where: str
    """The reference's rule."""
    conditions: tuple[Condition, ...] = ()


def at(value: Json, path: str) -> Any:
    """The value of a dotted path; None where there is none."""
    found: Any = value
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _number(value: Json, path: str) -> int:
    found = at(value, path)
    return found if isinstance(found, int) else 0


def _bytes(value: Json, path: str) -> int | None:
    try:
        return Quantity.from_json(at(value, path)).value
    except (ValueError, TypeError):
        return None


def _is_x86(running: Json, _wanted: Json) -> bool:
    return at(running, "spec.architecture") in ("amd64", None, "")


def _within_max_guest(running: Json, wanted: Json) -> bool:
    most, guest = _bytes(running, "spec.domain.memory.maxGuest"), _bytes(wanted, "spec.domain.memory.guest")
    return most is not None and guest is not None and guest <= most


def _not_below_boot(running: Json, wanted: Json) -> bool:
    boot = _bytes(running, "status.memory.guestAtBoot")
    boot = _bytes(running, "spec.domain.memory.guest") if boot is None else boot
    return (_bytes(wanted, "spec.domain.memory.guest") or 0) >= (boot or 0)


def _in_blocks(_running: Json, wanted: Json) -> bool:
    gigantic = at(wanted, "spec.domain.memory.hugepages.pageSize") == "1Gi"
    return (_bytes(wanted, "spec.domain.memory.guest") or 0) % (_GIGANTIC_BLOCK if gigantic else _BLOCK) == 0


def _lacks(path: str) -> Callable[[Json, Json], bool]:
    return lambda _running, wanted: at(wanted, path) is None


RULES: tuple[Rule, ...] = (
    Rule(
        ("spec.domain.cpu.sockets",),
        "vCPUs are plugged in, after a live migration into a pod with room for them",
        "pkg/virt-controller/watch/vm/vm.go:622",
        (
            Condition(
                lambda running, wanted: (
                    _number(wanted, "spec.domain.cpu.sockets")
                    <= _number(running, "spec.domain.cpu.maxSockets")
                ),
                "the running guest has no room for so many sockets: its cpu.maxSockets is less",
            ),
            Condition(
                lambda running, wanted: (
                    _number(wanted, "spec.domain.cpu.sockets") >= _number(running, "spec.domain.cpu.sockets")
                ),
                "sockets are added to a running guest, never taken away",
            ),
            Condition(
                lambda running, _wanted: at(running, "spec.architecture") != "arm64",
                "arm64 cannot plug vCPUs",
            ),
        ),
    ),
    Rule(
        ("spec.domain.memory.guest",),
        "memory is plugged in as a virtio-mem device, after a live migration: the machine must be able to migrate",
        "pkg/virt-controller/watch/vm/vm.go:3444, pkg/liveupdate/memory/memory.go:56",
        (
            Condition(_is_x86, "memory can be plugged in on amd64 only"),
            Condition(_lacks("spec.domain.cpu.realtime"), "a realtime guest cannot take more memory"),
            Condition(
                _lacks("spec.domain.cpu.numa.guestMappingPassthrough"),
                "a guest with the host's NUMA cells cannot take more memory",
            ),
            Condition(_lacks("spec.domain.launchSecurity"), "an encrypted guest cannot take more memory"),
            Condition(
                lambda running, _wanted: at(running, "spec.domain.memory.maxGuest") is not None,
                "the running guest has no room for memory: it was started without memory.maxGuest",
            ),
            Condition(
                _within_max_guest, "the running guest has no room for so much: its memory.maxGuest is less"
            ),
            Condition(_not_below_boot, "a guest never gets less memory than it was started with"),
            Condition(_in_blocks, "memory is plugged in whole blocks: of 2Mi, on huge pages of 1Gi of 1Gi"),
            Condition(
                lambda _running, wanted: (_bytes(wanted, "spec.domain.memory.guest") or 0) >= _SMALLEST_GUEST,
                "guests below 1Gi cannot take more memory",
            ),
        ),
    ),
    Rule(
        ("spec.nodeSelector", "spec.affinity", "spec.tolerations"),
        "counts from the next migration on",
        "pkg/virt-controller/watch/vm/vm.go:3028",
    ),
)
"""The live updates of single fields; disks and interfaces, which are judged as a whole, are in `devices`."""


def field_verdict(path: str, running: Json, wanted: Json) -> Verdict:
    """Whether the running guest can take another value of one field. Both instances have their defaults."""
    for rule in RULES:
        if any(path == field or path.startswith((f"{field}.", f"{field}[")) for field in rule.fields):
            for condition in rule.conditions:
                if not condition.holds(running, wanted):
                    return Verdict(False, condition.otherwise)
            return Verdict(True, rule.live)
    if path.startswith("status"):
        return Verdict(True, "the cluster keeps it up to date")
    if path.startswith("metadata."):
        return Verdict(False, "is read when the machine starts")
    return Verdict(False, "cannot change while the guest runs")
