"""Ending a guest: by asking first, or at once (``pkg/virt-handler/vm.go:1642-1830``)."""

from __future__ import annotations

import logging
from datetime import datetime

from kvnode.agent import domain as states
from kvnode.agent.cleanup import clean_up
from kvnode.agent.domain import Domain
from kvnode.agent.errors import FAILURES, is_disconnected
from kvnode.agent.parts import Launcher, Parts
from kvnode.agent.vmi import Vmi, grace_seconds, key_of

logger = logging.getLogger(__name__)

FAREWELL_SECONDS = 3.0
"""For a launcher to tell that the domain is gone: it does so at once, or cannot."""
RESEND = 5
"""Seconds until a guest that is still there is asked again: one that boots does not hear."""


async def shut_down(vmi: Vmi, domain: Domain, parts: Parts) -> None:
    """Ask the guest to go, and kill it when its grace period is over or there is none."""
    await parts.hooks.call("PreVMStop", vmi)
    launcher = await parts.launchers.verified(vmi)
    if domain.grace_seconds:
        left = seconds_left(grace_seconds(vmi), domain, parts.clock.now())
        if left is None or left > 0:
            if domain.status != states.SHUTTING_DOWN:
                await _ask(vmi, launcher, left, parts)
            return
    await _kill(vmi, launcher, parts)


async def destroy(vmi: Vmi, parts: Parts) -> None:
    """Kill the guest."""
    await parts.hooks.call("PreVMStop", vmi)
    await _kill(vmi, await parts.launchers.verified(vmi), parts)


def seconds_left(grace: int | None, domain: Domain, now: datetime) -> int | None:
    """Seconds of the grace period that are left, 0 when it is over; None when it has not begun.

    ``grace`` is the VMI's; the domain's own counts where that is not set.
    """
    period = (domain.grace_seconds or 0) if grace is None else grace
    if period == 0:
        return 0
    began = domain.shutdown_began
    if began is None:
        return None
    # A time that is still to come would give a launcher more than its VM may have.
    passed = max(0, int(now.timestamp()) - int(began.timestamp()))
    return max(0, period - passed)


async def _ask(vmi: Vmi, launcher: Launcher, left: int | None, parts: Parts) -> None:
    try:
        await launcher.shutdown(vmi)
    except FAILURES as error:
        # The launcher ends its VM as well, and may be gone before it has answered.
        if not is_disconnected(error):
            raise
    if left is None:
        # Once: more would use up what a VMI may have of Events before it has stopped.
        parts.recorder.event(vmi, "Normal", "ShuttingDown", "the guest was asked to shut down")
        grace = grace_seconds(vmi)
        left = RESEND if grace is None else grace
    parts.queue.add_after(key_of(vmi), float(min(left, RESEND)))


async def _kill(vmi: Vmi, launcher: Launcher, parts: Parts) -> None:
    try:
        await launcher.kill(vmi)
    except FAILURES as error:
        if not is_disconnected(error):
            raise
    parts.recorder.event(vmi, "Normal", "Deleted", "the VM is stopped")


async def delete(vmi: Vmi, parts: Parts) -> None:
    """Have the launcher forget the domain, if there is a launcher, and clean up after it."""
    try:
        await _delete_domain(vmi, parts)
    finally:
        # A connection to a launcher that is ending must not be found by the next pass.
        await parts.launchers.close(vmi)
    await clean_up(vmi, parts)


async def _delete_domain(vmi: Vmi, parts: Parts) -> None:
    try:
        launcher = await parts.launchers.verified(vmi)
    except FAILURES as error:
        logger.info("%s: no launcher to delete the domain: %s", key_of(vmi), error)
        return
    parts.recorder.event(vmi, "Normal", "Deleted", "the launcher was told to delete the domain")
    try:
        await launcher.delete(vmi)
        # Until it could tell of the end it does not end itself, for most of a minute.
        await parts.domains.deletion(key_of(vmi), FAREWELL_SECONDS)
    except FAILURES as error:
        if not is_disconnected(error):
            raise
