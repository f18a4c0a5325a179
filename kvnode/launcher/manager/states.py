"""libvirt's numbers for a domain's state, under KubeVirt's names
(``pkg/virt-launcher/virtwrap/api/schema.go:49``).
"""

from __future__ import annotations

_STATES = (
    "NoState",
    "Running",
    "Blocked",
    "Paused",
    "ShuttingDown",
    "Shutoff",
    "Crashed",
    "PMSuspended",
)
_UNKNOWN = "Unknown"

# By state, the names of its reasons in libvirt's order; a state that is not here has none that matter.
_REASONS = {
    3: (
        _UNKNOWN,
        "User",
        "Migration",
        "Save",
        "Dump",
        "IOError",
        "Watchdog",
        "FromSnapshot",
        "ShuttingDown",
        "Snapshot",
        "Crashed",
        "StartingUp",
        "Postcopy",
        "PostcopyFailed",
    ),
    4: (_UNKNOWN, "User"),
    5: (
        _UNKNOWN,
        "Shutdown",
        "Destroyed",
        "Crashed",
        "Migrated",
        "Saved",
        "Failed",
        "FromSnapshot",
    ),
    6: (_UNKNOWN, "Panicked"),
}

# VIR_DOMAIN_SHUTOFF with VIR_DOMAIN_SHUTOFF_DAEMON.
_LOST = (5, 8)

#: Paused for one of these, a guest is well (``pkg/virt-launcher/virtwrap/manager.go:isPausedButHealthy``).
HEALTHY_PAUSES = frozenset(
    (
        "User",
        "Migration",
        "Save",
        "Dump",
        "FromSnapshot",
        "ShuttingDown",
        "Snapshot",
        "StartingUp",
        "Postcopy",
    )
)


def state_name(state: int) -> str:
    """KubeVirt's name of a state; "" for one that it has no name for."""
    return _STATES[state] if 0 <= state < len(_STATES) else ""


def reason_name(state: int, reason: int) -> str:
    """KubeVirt's name of the reason for a state; "" for one that it has no name for."""
    names = _REASONS.get(state)
    if names is None:
        return _UNKNOWN
    return names[reason] if 0 <= reason < len(names) else ""


def told_reason(state: int, reason: int, *, has_run: bool) -> str:
    """The reason as agents are told it: :func:`reason_name`, but for a guest whose QEMU died while libvirt's daemon
    was away. KubeVirt has no name for that (``pkg/virt-launcher/virtwrap/util/libvirt_helper.go:63``), and a guest
    that is off for a nameless reason keeps its phase: it would count as running. It crashed; one that had not been
    started yet failed to start, and is started again.
    """
    if (state, reason) == _LOST:
        return "Crashed" if has_run else "Failed"
    return reason_name(state, reason)
