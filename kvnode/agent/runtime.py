"""The launcher's processes and files on this node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from kvnode.agent.domain import Domain
from kvnode.agent.errors import AgentError
from kvnode.agent.memlock import locks_memory, memlock_bytes, set_memlock, target_process
from kvnode.agent.ownership import claim_devices
from kvnode.agent.processes import descendants, household_of
from kvnode.agent.rootfs import size_in_root
from kvnode.agent.vmi import Vmi, spec
from kvnode.spec.config import ClusterConfig

SELINUX = Path("/sys/fs/selinux/enforce")


class Place(Protocol):
    """Where a launcher lives."""

    @property
    def pid(self) -> int:
        """PID of the process that listens at the command socket."""

    @property
    def root(self) -> Path:
        """Its root file system."""


class NodeRuntime:
    """What is done to the launchers themselves."""

    def __init__(
        self,
        place_of: Callable[[Vmi], Awaitable[Place]],
        config: Callable[[], ClusterConfig],
        architecture: str,
    ) -> None:
        """`place_of` finds a VMI's launcher and raises one of `errors.FAILURES` when there is none."""
        self._place_of = place_of
        self._config = config
        self._architecture = architecture

    async def claim_devices(self, vmi: Vmi) -> None:
        """Give device nodes and disk files to the launcher's user."""
        place = await self._place_of(vmi)
        await asyncio.to_thread(claim_devices, vmi, place.root, self._config())

    async def adjust_resources(self, vmi: Vmi) -> None:
        """Raise the limit of locked memory where a device needs it."""
        if not locks_memory(vmi):
            return
        place = await self._place_of(vmi)
        size = memlock_bytes(vmi, self._architecture, self._config())
        pid = target_process(vmi, list(descendants(household_of(place.pid).monitor)))
        if pid is not None:
            set_memlock(pid, size)

    async def housekeeping(self, vmi: Vmi, domain: Domain | None) -> None:  # noqa: ARG002
        """Refuse what would need threads to be moved: nothing else follows a Sync."""
        cpu = (spec(vmi).get("domain") or {}).get("cpu") or {}
        for field in ("realtime", "isolateEmulatorThread"):
            if cpu.get(field):
                raise AgentError(
                    f"spec.domain.cpu.{field}: this agent does not move threads between CPUs yet"
                )

    async def selinux_context(self, vmi: Vmi) -> str:
        """SELinux context of the launcher; "none" where there is no SELinux."""
        if not SELINUX.exists():
            return "none"
        place = await self._place_of(vmi)
        text = await asyncio.to_thread(Path(f"/proc/{place.pid}/attr/current").read_text)
        return text.strip("\0\n ") or "none"

    async def file_size(self, vmi: Vmi, path: str) -> int:
        """Size in bytes of a file in the launcher's root; never looked for outside of it."""
        place = await self._place_of(vmi)
        try:
            return await asyncio.to_thread(size_in_root, place.root, path)
        except OSError as error:
            raise AgentError(f"the launcher's {path}: {error.strerror}") from error
