"""The launcher's processes and files on this node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kvnode.agent import cgroups, devicerules, housekeeping
from kvnode.agent.apart import Apart
from kvnode.agent.cgroups import Groups, groups_of
from kvnode.agent.diskimages import make_host_disks
from kvnode.agent.domain import Domain
from kvnode.agent.errors import AgentError
from kvnode.agent.memlock import locks_memory, memlock_bytes, set_memlock, target_process
from kvnode.agent.ownership import claim_devices
from kvnode.agent.parts import Recorder
from kvnode.agent.processes import descendants, household_of
from kvnode.agent.rootfs import size_in_root
from kvnode.agent.vmi import Vmi, key_of, uid_of
from kvnode.spec.config import ClusterConfig

logger = logging.getLogger(__name__)

SELINUX = Path("/sys/fs/selinux/enforce")


class Place(Protocol):
    """Where a launcher lives."""

    @property
    def pid(self) -> int:
        """PID of the process that listens at the command socket."""

    @property
    def root(self) -> Path:
        """Its root file system: good as long as this object is kept, and never another process'."""

    @property
    def proc(self) -> Path:
        """Its folder in /proc, likewise."""


@dataclass(slots=True)
class _Done:
    """What was done to a launcher's control groups."""

    groups: Groups
    allowed: list[devicerules.Rule] = field(default_factory=list)


class NodeRuntime:
    """What is done to the launchers themselves."""

    def __init__(
        self,
        place_of: Callable[[Vmi], Awaitable[Place]],
        config: Callable[[], ClusterConfig],
        architecture: str,
        recorder: Recorder,
        *,
        devices: Path = Path("/dev"),
        control_groups: Path = cgroups.ROOT,
    ) -> None:
        """`place_of` finds a VMI's launcher and raises one of `errors.FAILURES` when there is none.

        `devices` is the node's ``/dev``, `control_groups` where the node has its control groups.
        """
        self._place_of = place_of
        self._config = config
        self._architecture = architecture
        self._recorder = recorder
        self._devices = devices
        self._control_groups = control_groups
        self._done: dict[str, _Done] = {}
        self._apart = Apart()

    async def claim_devices(self, vmi: Vmi) -> None:
        """Make host disks, give device nodes and disk files to the launcher's user, and let it open devices."""
        place = await self._place_of(vmi)
        config = self._config()
        what = "disks for the VM, and files for its launcher's user"
        for text in await self._apart.run(uid_of(vmi), what, lambda: self._claim(vmi, place, config)):
            self._recorder.event(vmi, "Normal", "ToleratedSmallPV", text)

    def _claim(self, vmi: Vmi, place: Place, config: ClusterConfig) -> list[str]:
        """All of it; the answer is what the VMI's owner is to be told. Blocks."""
        told: list[str] = []
        make_host_disks(vmi, place.root, config, told.append)
        claim_devices(vmi, place.root, config)
        done = self._done_to(vmi, place)
        rules = devicerules.needed(vmi, place.root, self._devices)
        done.allowed += devicerules.allow(done.groups, rules)
        return told

    def _done_to(self, vmi: Vmi, place: Place) -> _Done:
        groups = groups_of(place.pid, root=self._control_groups)
        done = self._done.setdefault(uid_of(vmi), _Done(groups))
        if done.groups != groups:  # the pod has another launcher now
            done = self._done[uid_of(vmi)] = _Done(groups)
        return done

    async def adjust_resources(self, vmi: Vmi) -> None:
        """Raise the limit of locked memory where a device needs it."""
        if not locks_memory(vmi):
            return
        place = await self._place_of(vmi)
        size = memlock_bytes(vmi, self._architecture, self._config())
        pid = target_process(vmi, list(descendants(household_of(place.pid).monitor)))
        if pid is not None:
            set_memlock(pid, size)

    async def housekeeping(self, vmi: Vmi, domain: Domain | None) -> None:
        """Move threads between CPUs, and have them run in real time, where the VM asks for it."""
        if not housekeeping.isolates_helpers(vmi) and not housekeeping.needs_scheduling(vmi):
            return
        place = await self._place_of(vmi)
        if housekeeping.isolates_helpers(vmi):
            groups = (await asyncio.to_thread(self._done_to, vmi, place)).groups
            await asyncio.to_thread(housekeeping.isolate_helpers, groups, domain)
        if housekeeping.needs_scheduling(vmi):
            monitor = household_of(place.pid).monitor
            await asyncio.to_thread(housekeeping.schedule, vmi, monitor)

    async def release(self, vmi: Vmi) -> None:
        """Take back what was allowed, and put threads back. With the pod's control groups it is gone by itself."""
        done = self._done.pop(uid_of(vmi), None)
        if done is not None:
            await asyncio.to_thread(_release, done, key_of(vmi))

    async def selinux_context(self, vmi: Vmi) -> str:
        """SELinux context of the launcher; "none" where there is no SELinux."""
        if not SELINUX.exists():
            return "none"
        place = await self._place_of(vmi)
        text = await asyncio.to_thread((place.proc / "attr/current").read_text)
        return text.strip("\0\n ") or "none"

    async def file_size(self, vmi: Vmi, path: str) -> int:
        """Size in bytes of a file in the launcher's root; never looked for outside of it."""
        place = await self._place_of(vmi)
        try:
            return await asyncio.to_thread(lambda: size_in_root(place.root, path))
        except OSError as error:
            raise AgentError(f"the launcher's {path}: {error.strerror}") from error


def _release(done: _Done, key: str) -> None:
    try:
        devicerules.deny(done.groups, done.allowed)
        housekeeping.give_back(done.groups)
    except AgentError as error:
        logger.warning("%s: %s", key, error)
