"""Conditions that say how the domain is: Paused, SoftwareEmulation, AccessCredentialsSynchronized, Synchronized."""

from __future__ import annotations

from datetime import datetime

from kvnode.agent import domain as states
from kvnode.agent.conditions import listing
from kvnode.agent.domain import Domain
from kvnode.agent.errors import CriticalNetworkError, IrrecoverableError, SecureBootError, is_caused_by
from kvnode.agent.migration import is_source
from kvnode.agent.parts import Recorder
from kvnode.agent.vmi import Vmi, spec, status
from kvnode.api.phases import ConditionType, Phase

SYNC_FAILED = "Synchronizing with the Domain failed."
"""The reason of Synchronized, a sentence in this API."""

_PAUSES = {
    "User": ("PausedByUser", "a user paused the VM"),
    "IOError": ("PausedIOError", "the VM's storage failed, and it was paused until that works again"),
    "Migration": ("PausedByMigrationMonitor", "the VM was paused so that its migration can end"),
}


def set_paused(vmi: Vmi, domain: Domain | None, node: str, now: datetime) -> None:
    """Set Paused (``pkg/virt-handler/vm.go:926,1196``). A reason that is there already stays."""
    current = vmi["status"]
    if domain is None or domain.status != states.PAUSED:
        listing.remove(current, ConditionType.PAUSED)
        return
    known = _PAUSES.get(domain.reason)
    if known is None or listing.find(current, ConditionType.PAUSED) is not None:
        return
    if domain.reason == "Migration" and not _is_paused_by_migration(vmi, node):
        return  # QEMU stops the guest at the end of every migration
    reason, message = known
    listing.add(
        current,
        listing.make(
            ConditionType.PAUSED.value, listing.TRUE, reason=reason, message=message, probed=now, changed=now
        ),
    )


def _is_paused_by_migration(vmi: Vmi, node: str) -> bool:
    migration = status(vmi).get("migrationState") or {}
    return migration.get("mode") == "Paused" and not migration.get("completed") and is_source(vmi, node)


def set_software_emulation(vmi: Vmi, domain: Domain | None, *, gate: bool, host: str, now: datetime) -> None:
    """Set SoftwareEmulation where guests of another architecture than ``host``'s are allowed by ``gate``."""
    if not gate:
        return
    current = vmi["status"]
    guest = str(spec(vmi).get("architecture") or "")
    if domain is None or domain.spec("Type") != "qemu" or guest in ("", host):
        listing.remove(current, ConditionType.SOFTWARE_EMULATION)
    elif listing.find(current, ConditionType.SOFTWARE_EMULATION) is None:
        condition = listing.make(
            ConditionType.SOFTWARE_EMULATION.value,
            listing.TRUE,
            reason="CrossArchitectureEmulation",
            message=f"a node of {host} emulates the guest's {guest}",
            probed=now,
            changed=now,
        )
        listing.add(current, condition)


def set_access_credentials(vmi: Vmi, domain: Domain | None, recorder: Recorder, now: datetime) -> None:
    """Set AccessCredentialsSynchronized by what the launcher noted in the domain's metadata."""
    if domain is None or domain.metadata("AccessCredential") is None:
        return
    message = str(domain.metadata("AccessCredential", "Message") or "")[: listing.LONGEST_MESSAGE]
    done = domain.metadata("AccessCredential", "Succeeded") is True
    value = listing.TRUE if done else listing.FALSE
    kind = ConditionType.ACCESS_CREDENTIALS_SYNCHRONIZED
    current = vmi["status"]
    present = listing.find(current, kind)
    if present and present.get("status") == value and (present.get("message") or "") == message:
        return
    listing.remove(current, kind)
    listing.add(current, listing.make(kind.value, value, message=message, changed=now))
    if done:
        recorder.event(
            vmi, "Normal", "AccessCredentialsSyncSuccess", message or "access credentials are in the guest"
        )
    else:
        recorder.event(
            vmi,
            "Warning",
            "AccessCredentialsSyncFailed",
            f"access credentials are not in the guest: {message}",
        )


def set_synchronized(vmi: Vmi, error: Exception | None, now: datetime) -> None:
    """Set Synchronized by how the pass ended, and fail the VMI where trying again cannot help.

    A network error counts wherever it came from; the others only where they are the pass's own result
    (``pkg/virt-handler/vm.go:1167-1183``).
    """
    current = vmi["status"]
    if is_caused_by(error, CriticalNetworkError) or isinstance(error, SecureBootError | IrrecoverableError):
        current["phase"] = Phase.FAILED.value
    kind = ConditionType.SYNCHRONIZED
    if error is None:
        listing.remove(current, kind)
        return
    present = listing.find(current, kind)
    if present and present.get("status") == listing.FALSE and present.get("reason") == SYNC_FAILED:
        return
    listing.remove(current, kind)
    listing.add(
        current,
        listing.make(kind.value, listing.FALSE, reason=SYNC_FAILED, message=str(error), changed=now),
    )
