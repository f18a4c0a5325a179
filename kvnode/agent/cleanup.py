"""What is undone on this node when a VMI is gone (``pkg/virt-handler/vm.go:1603-1640``)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

from kvnode.agent.errors import FAILURES
from kvnode.agent.ghost import Ghost
from kvnode.agent.parts import Parts
from kvnode.agent.vmi import Vmi, is_owned_by, key_of, reference, uid_of

logger = logging.getLogger(__name__)


async def clean_up(vmi: Vmi, parts: Parts) -> None:
    """Undo all of it; it is safe to do so again.

    The launcher's record goes last: as long as something is left, it keeps the VMI from being forgotten.
    """
    uid = uid_of(vmi)
    parts.proxy.stop_target(uid)
    parts.proxy.stop_source(uid)
    await parts.metrics.stop(vmi)
    await parts.disks.unmount(vmi)
    await parts.hotplug.unmount_all(vmi)
    await parts.runtime.release(vmi)
    if uid:
        try:
            await parts.network.teardown(vmi)
        except FAILURES as error:
            logger.warning("%s: files of the network are left: %s", key_of(vmi), error)
        parts.network.forget(vmi)
    parts.sriov_limiter.forget(uid)
    await parts.launchers.close(vmi)
    parts.domains.delete(key_of(vmi))


async def clean_up_moved(
    records: Iterable[Ghost], answers: Callable[[str], Awaitable[bool]], parts: Parts
) -> None:
    """Clean up after VMIs that run on another node now, whose launchers here ended while no agent saw it.

    Records of VMIs that are gone altogether are left to the passes over their names.
    """
    for ghost in records:
        vmi = parts.vmis.get(ghost.key) or await parts.api.read(ghost.key)
        if vmi is None or is_owned_by(vmi, parts.node) or uid_of(vmi) != ghost.uid:
            continue
        if not await answers(ghost.socket):
            await clean_up(reference(ghost.namespace, ghost.name, ghost.uid), parts)
