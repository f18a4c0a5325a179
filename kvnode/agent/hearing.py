"""Asking a launcher for its domain, where its news may be late."""

from __future__ import annotations

from kvnode.agent.domain import Domain
from kvnode.agent.errors import FAILURES
from kvnode.agent.ghost import Ghost
from kvnode.agent.parts import Launcher, Parts
from kvnode.agent.vmi import Vmi, key_of, uid_of
from kvnode.kube.objects import split_key


async def has_come_up(vmi: Vmi, parts: Parts) -> bool:
    """Whether a domain that was last heard to be off is alive after all; if so it is taken note of.

    A start is defined, then runs, and the news of the second may come after a pass that saw the first alone:
    to take the domain for a dead one then would be its end.
    """
    try:
        raw = await (await parts.launchers.verified(vmi)).domain()
        if raw is None or not Domain(raw).is_alive:
            return False
        parts.domains.heard("MODIFIED", raw, _sender(vmi))
    except FAILURES:
        return False
    return True


async def hear_first(vmi: Vmi, launcher: Launcher, parts: Parts) -> None:
    """See to it that the domain of a VMI is known once the launcher has it.

    Its news go to whoever listens when something happens, and may have been told to an agent that is gone.

    Raises one of `errors.FAILURES`.
    """
    if parts.domains.get(key_of(vmi)) is not None:
        return
    raw = await launcher.domain()
    if raw is not None and parts.domains.get(key_of(vmi)) is None:
        parts.domains.heard("ADDED", raw, _sender(vmi))


def _sender(vmi: Vmi) -> Ghost:
    return Ghost(*split_key(key_of(vmi)), uid_of(vmi), "")
