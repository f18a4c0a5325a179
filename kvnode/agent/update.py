"""Starting a VM, and keeping a running one as its VMI says (``pkg/virt-handler/vm.go:1932-2260``)."""

from __future__ import annotations

import logging

from kvnode.agent.domain import Domain
from kvnode.agent.errors import FAILURES, AgentError, HotplugWaitingError, SecureBootError
from kvnode.agent.hearing import hear_first
from kvnode.agent.hostdisks import with_host_disks
from kvnode.agent.networks import has_unplugged_sriov, networks_to_change, networks_to_start
from kvnode.agent.parts import Launcher, LauncherState, Parts
from kvnode.agent.vmi import (
    Vmi,
    is_hotpluggable,
    is_running,
    is_sev,
    key_of,
    launch_security,
    spec,
    uid_of,
    volume_statuses,
    volumes,
)

logger = logging.getLogger(__name__)

RETRY = 1.0
"""Seconds until what another is preparing is looked at again."""

NO_FIRMWARE = "EFI OVMF rom missing"
"""What a launcher says, among other things, when it has no firmware for the VM; part of the protocol."""

DUMPS = "/var/run/kubevirt/hotplug-disks"


async def update(vmi: Vmi, domain: Domain | None, parts: Parts) -> None:
    """Bring the node and the domain to what the VMI asks for, as far as they are ready for it.

    ``vmi`` is left as it is: the launcher gets a copy of its own.
    """
    state = await parts.launchers.state(vmi)
    if state is LauncherState.STARTING:
        parts.queue.add_after(key_of(vmi), RETRY)
        return
    if state is LauncherState.UNRESPONSIVE:
        raise AgentError("the launcher does not answer: its command socket is gone or marked as unresponsive")
    launcher = await parts.launchers.client(vmi)
    preallocated = [
        str(one.get("name"))
        for one in volume_statuses(vmi)
        if (one.get("persistentVolumeClaimInfo") or {}).get("preallocated")
    ]
    asked = with_host_disks(vmi)
    tolerated: list[Exception] = []
    if is_running(vmi):
        tolerated = await _prepare_running(asked, parts)
    elif not await _prepare_start(asked, parts):
        return
    else:
        await parts.hooks.call("PreVMStart", asked)
    await _sync(launcher, asked, preallocated)
    if domain is None:
        parts.recorder.event(vmi, "Normal", "Created", "the domain is defined")
        await hear_first(vmi, launcher, parts)
    await parts.runtime.housekeeping(asked, domain)
    if is_running(vmi):
        await parts.hotplug.unmount(asked)
    if tolerated:
        # Not raised from the cause: a network that could not be plugged does not fail a running VM.
        raise AgentError("; ".join(str(error) for error in tolerated))


async def _sync(launcher: Launcher, vmi: Vmi, preallocated: list[str]) -> None:
    try:
        await launcher.sync(vmi, preallocated)
    except FAILURES as error:
        if NO_FIRMWARE in str(error):
            raise SecureBootError(
                f"spec.domain.firmware.bootloader.efi: the launcher has no firmware for it: {error}"
            ) from error
        raise


async def _prepare_start(vmi: Vmi, parts: Parts) -> bool:
    """Prepare all that a VM needs to start; tell whether all is there."""
    since = parts.launchers.waiting_since(vmi)
    if since is None:
        parts.queue.add_rate_limited(key_of(vmi))
        return False
    if not await parts.disks.ready(vmi, since):
        parts.queue.add_after(key_of(vmi), RETRY)
        return False
    await parts.disks.mount(vmi)
    await _mount_plugged(vmi, parts)
    if not _plugged_volumes_are_ready(vmi):
        parts.queue.add_after(key_of(vmi), RETRY)
        return False
    if networks := networks_to_start(vmi):
        try:
            await parts.network.setup(vmi, networks)
        except FAILURES as error:
            raise AgentError(f"the pod's network: {error}") from error
    await parts.runtime.claim_devices(vmi)
    await _adjust_resources(vmi, parts)
    return not _waits_for_attestation(vmi)


async def _prepare_running(vmi: Vmi, parts: Parts) -> list[Exception]:
    """Prepare what is changed in a VM that runs; return errors that do not keep the rest from being done."""
    await _plug_sriov(vmi, parts)
    await _mount_plugged(vmi, parts)
    await _dump_memory(vmi, parts)
    await parts.metrics.start(vmi)
    if networks := networks_to_change(vmi):
        try:
            await parts.network.setup(vmi, networks)
        except FAILURES as error:
            parts.recorder.event(vmi, "Warning", "NicHotplug", str(error))
            return [error]
    return []


async def _mount_plugged(vmi: Vmi, parts: Parts) -> None:
    try:
        await parts.hotplug.mount(vmi)
    except HotplugWaitingError:
        parts.queue.add_after(key_of(vmi), RETRY)
    except FileNotFoundError as error:
        parts.recorder.event(vmi, "Warning", "HotplugFailed", str(error))


def _plugged_volumes_are_ready(vmi: Vmi) -> bool:
    if not any(map(is_hotpluggable, volumes(vmi))) and not spec(vmi).get("utilityVolumes"):
        return True
    statuses = volume_statuses(vmi)
    plugged = [one for one in statuses if one.get("hotplugVolume") is not None]
    return bool(statuses) and all(one.get("phase") in ("Ready", "MountedToPod") for one in plugged)


async def _adjust_resources(vmi: Vmi, parts: Parts) -> None:
    try:
        await parts.runtime.adjust_resources(vmi)
    except FAILURES as error:
        raise AgentError(f"limits of the launcher: {error}") from error


def _waits_for_attestation(vmi: Vmi) -> bool:
    """Whether the owner of a SEV guest has yet to hand in the session that it starts with."""
    security = launch_security(vmi) or {}
    sev = security.get("sev")
    if not is_sev(vmi) or security.get("snp") is not None or sev is None:
        return False
    return sev.get("attestation") is not None and not (sev.get("session") and sev.get("dhCert"))


async def _plug_sriov(vmi: Vmi, parts: Parts) -> None:
    """Have devices plugged whose interfaces came into the pod; a failure is tried again, ever more seldom."""
    uid = uid_of(vmi)
    if not has_unplugged_sriov(vmi):
        parts.sriov_limiter.forget(uid)
        return
    if not parts.sriov_limiter.allows(uid):
        return
    try:
        launcher = await parts.launchers.verified(vmi)
        await parts.runtime.adjust_resources(vmi)
        await launcher.hotplug_host_devices(vmi)
    except FAILURES as error:
        logger.warning("%s: SR-IOV devices are not plugged: %s", key_of(vmi), error)
        parts.recorder.event(vmi, "Warning", "NicHotplug", f"SR-IOV devices are not plugged: {error}")


async def _dump_memory(vmi: Vmi, parts: Parts) -> None:
    for one in volume_statuses(vmi):
        dump = one.get("memoryDumpVolume")
        if dump is not None and one.get("phase") == "MemoryDumpInProgress":
            launcher = await parts.launchers.verified(vmi)
            await launcher.memory_dump(vmi, f"{DUMPS}/{one.get('name')}/{dump.get('targetFileName')}")
