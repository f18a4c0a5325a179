"""One pass over a name: who looks after it now, and what (``pkg/virt-handler/vm.go:321-436``)."""

from __future__ import annotations

from kvnode.agent.cleanup import clean_up
from kvnode.agent.domain import Domain
from kvnode.agent.migration import is_in_progress, is_migrating, is_synchronized_source
from kvnode.agent.parts import LauncherState, Parts
from kvnode.agent.shutdown import delete
from kvnode.agent.sync import Subject, sync
from kvnode.agent.vmi import Vmi, is_deleting, is_owned_by, key_of, phase_of, reference, uid_of
from kvnode.api.phases import Phase
from kvnode.kube.objects import split_key

STARTING_RETRY = 1.0
STALE_RETRY = 5.0
"""Seconds from the clean-up after an old VMI of a name to the start of the new one."""


async def execute(key: str, parts: Parts) -> None:
    """Work on the VMI ``namespace/name``.

    Raises one of `errors.FAILURES` when the pass is to be repeated.
    """
    vmi = parts.vmis.get(key)
    if vmi is None:
        # The watch over this node's VMIs may lag behind the launchers, and a VMI may lose its label: nothing is
        # ended before the API server itself has said that it is gone.
        vmi = await parts.api.read(key)
    exists = vmi is not None
    if not exists:
        parts.expectations.forget(key)
    elif not parts.expectations.satisfied(key):
        return
    parts.ends.forget_others(key, uid_of(vmi) if vmi is not None else "")
    cached = parts.domains.get(key)
    if vmi is None:
        namespace, name = split_key(key)
        uid = (cached.uid if cached else "") or parts.ghosts.last_known_uid(key)
        vmi = reference(namespace, name, uid)
    domain = None if cached is None or cached.is_deleted else cached
    if exists and domain is not None and domain.uid != uid_of(vmi):
        await _meet_older(vmi, domain, parts)
    elif domain is not None and domain.is_migrated:
        await delete(vmi, parts)
    else:
        await _look_after(Subject(vmi, exists, domain), parts)


async def _meet_older(vmi: Vmi, domain: Domain, parts: Parts) -> None:
    """A VMI whose name is still used by the domain of an older one has to wait until that is gone."""
    namespace, name = split_key(key_of(vmi))
    older = reference(namespace, name, domain.uid)
    older["status"] = {"activePods": (vmi.get("status") or {}).get("activePods")}
    state = await parts.launchers.state(older)
    if state is LauncherState.STARTING:
        parts.queue.add_after(key_of(vmi), STARTING_RETRY)
    elif state is LauncherState.UNRESPONSIVE:
        await clean_up(older, parts)
        parts.queue.add_after(key_of(vmi), STALE_RETRY)


async def _look_after(subject: Subject, parts: Parts) -> None:
    vmi = subject.vmi
    if is_migrating(vmi, parts.clock.now()) and phase_of(vmi) == Phase.FAILED:
        await clean_up(vmi, parts)
    if not is_deleting(vmi) and is_in_progress(vmi, subject.domain):
        return
    if subject.exists and (not is_owned_by(vmi, parts.node) or is_synchronized_source(vmi)):
        return
    await sync(subject, parts)
