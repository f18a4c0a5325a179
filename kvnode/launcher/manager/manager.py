"""The domain manager: what the command server passes on, carried out in libvirt."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from kvnode.launcher.context import architecture_of
from kvnode.launcher.manager import hardware
from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.manager.domain_view import read_domain
from kvnode.launcher.manager.freeze import Freezer
from kvnode.launcher.manager.guest_agent import GuestAgent
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.lifecycle import Lifecycle
from kvnode.launcher.manager.memory import memory_report
from kvnode.launcher.manager.memory_dump import MemoryDumper
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.launcher.manager.screenshot import take_screenshot
from kvnode.launcher.manager.statistics import Statistics
from kvnode.launcher.manager.steps import Steps
from kvnode.launcher.manager.sync import Synchronizer
from kvnode.launcher.manager.unsupported import Unsupported
from kvnode.launcher.network import PodNetwork
from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions
from kvnode.virt.connection import Connection

_PAUSE_PROBES = "kubevirt.io/pause-guest-agent-probes"
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))

Json = Mapping[str, Any]


class Manager(Unsupported):
    """One VM's manager (:class:`kvnode.launcher.server.domain_manager.DomainManager`).

    Made and used in one event loop. What changes the domain takes turns; what ends the guest does not wait.
    """

    def __init__(
        self,
        connection: Connection,
        options: ManagerOptions,
        metadata: MetadataCache | None = None,
        *,
        agent: AgentStore | None = None,
        steps: Steps | None = None,
        network: PodNetwork | None = None,
    ) -> None:
        """``connection`` need not be open yet, and may be opened anew; ``agent`` is what the guest agent's
        poller fills; ``network`` gives the guest the pod's interfaces.
        """
        self.metadata = metadata if metadata is not None else MetadataCache()
        self.agent = agent if agent is not None else AgentStore()
        self.host = Host(connection, options, self.metadata)
        self._statistics = Statistics(self.host, self.agent)
        self._lifecycle = Lifecycle(self.host)
        self._guest_agent = GuestAgent(self.host)
        self._freezer = Freezer(self.host, self._guest_agent)
        self._dumper = MemoryDumper(self.host)
        self._sync = Synchronizer(self.host, self._statistics, steps or Steps(), network)
        self._vmi: Instance | None = None
        self._unfinished: tuple[Instance, VirtualMachineOptions | None, Sequence[Json]] | None = None

    async def close(self) -> None:
        """End what runs in the background. The guest is left alone."""
        await self.host.close()

    def mark_graceful_shutdown(self) -> None:
        """Tell the agent, by the metadata, that this launcher was asked to stop."""
        self.metadata.update("GracePeriod", MarkedForGracefulShutdown=True)

    async def _changing(self, vmi: Instance, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.host.check(vmi)
        await self.host.exclusively(work)

    # ---- the domain

    async def sync(
        self, vmi: Instance, options: VirtualMachineOptions | None, plugins: Sequence[Json]
    ) -> None:
        """Make the domain what the VMI says; no other is defined once one that had run was deleted."""

        async def work() -> None:
            self._unfinished = vmi, options, plugins
            await self._sync.sync(vmi, options, plugins, may_define=not self._lifecycle.deleted)
            self._guest_agent.probes_paused = vmi.annotations.get(_PAUSE_PROBES) in _TRUE
            self._vmi, self._unfinished = vmi, None

        await self._changing(vmi, work)

    async def start_again(self) -> None:
        """Do the last Sync once more if it failed and the guest has never run: libvirt's daemon died over it.

        Raises what :meth:`sync` raises; the next Sync tries again.
        """
        if self._unfinished is None or self.host.has_run():
            return
        self._sync.start_lost = True
        await self.sync(*self._unfinished)

    async def pause(self, vmi: Instance) -> None:
        """Suspend the guest."""
        await self._changing(vmi, lambda: self._lifecycle.pause(vmi))

    async def unpause(self, vmi: Instance) -> None:
        """Resume the guest."""
        await self._changing(vmi, lambda: self._lifecycle.unpause(vmi))

    async def delete(self, vmi: Instance) -> None:
        """Undefine the domain."""
        self.host.check(vmi)
        self._unfinished = None
        await self._changing(vmi, self._lifecycle.delete)

    async def reset(self, vmi: Instance) -> None:
        """Press the reset button."""
        self.host.check(vmi)
        await self._lifecycle.reset()

    async def soft_reboot(self, vmi: Instance) -> None:
        """Ask the guest to reboot."""
        self.host.check(vmi)
        await self._lifecycle.soft_reboot(vmi)

    async def shutdown(self, vmi: Instance) -> None:
        """Ask the guest to shut down."""
        self.host.check(vmi)
        self._unfinished = None
        await self.host.to_its_end(self._lifecycle.shutdown(vmi))

    async def kill(self, vmi: Instance) -> None:
        """End QEMU."""
        self.host.check(vmi)
        self._unfinished = None
        await self._lifecycle.kill()

    async def kill_guest(self) -> None:
        """End QEMU, for this process itself."""
        await self._lifecycle.kill()

    async def domain(self) -> Json | None:
        """The domain, with what the guest agent told; None when there is none."""
        found: Json | None = await self.host.call(read_domain, self.host)
        if found is None:
            return None
        # Whoever asks anew, as an agent that starts does, must not find less than what events tell.
        return {**found, "Status": {**found["Status"], **self.agent.domain_fields()}}

    # ---- its hardware

    async def update_cpus(self, vmi: Instance, options: VirtualMachineOptions | None) -> None:
        """Plug CPUs in or out, and pin them anew where they are the guest's own."""

        async def work() -> None:
            await self.host.call(lambda: hardware.set_vcpus(self.host.domain(), vmi.vcpus()))
            if vmi.dedicated_cpus:
                wanted = await self.host.work(self._sync.wanted, vmi, options)
                await self.host.call(lambda: hardware.pin_vcpus(self.host.domain(), wanted))

        await self._changing(vmi, work)

    async def update_memory(self, vmi: Instance) -> None:
        """Plug memory in or out."""

        async def work() -> None:
            await self.host.call(lambda: hardware.set_memory(self.host.domain(), vmi))

        await self._changing(vmi, work)

    async def hotplug_host_devices(self, vmi: Instance) -> None:
        """Plug in the SR-IOV functions that the guest lacks."""

        async def work() -> None:
            wanted = await self.host.work(self._sync.wanted, vmi, None)
            await self.host.call(lambda: hardware.attach_host_devices(self.host.domain(), wanted))

        await self._changing(vmi, work)

    async def memory_dump(self, vmi: Instance, path: str) -> None:
        """Start to write the guest's memory to ``path``."""
        self.host.check(vmi)
        self._dumper.start(path)

    async def screenshot(self, vmi: Instance) -> tuple[str, bytes]:
        """Media type and content of a picture of the guest's screen."""
        self.host.check(vmi)
        return await take_screenshot(self.host)

    # ---- measures

    async def memory_report(self) -> Json:
        """Where the VM's memory goes (``MemoryReport.as_dict()``)."""
        return await memory_report(self.host, self._vmi, architecture_of(self.host.options, self._vmi))

    async def domain_stats(self) -> Json:
        """The domain's statistics."""
        return await self._statistics.domain()

    async def dirty_rate(self, seconds: float) -> int | None:
        """Megabytes of memory that the guest dirties in a second."""
        return await self._statistics.dirty_rate(seconds)

    async def qemu_version(self) -> str:
        """QEMU's version: ``QEMU 7.2.22``."""
        version: int = await self.host.call(self.host.connection.raw.getVersion)
        return f"QEMU {version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}"

    # ---- the guest's agent

    async def freeze(self, vmi: Instance, unfreeze_seconds: int) -> None:
        """Freeze the guest's file systems."""
        self.host.check(vmi)
        await self.host.to_its_end(self._freezer.freeze(vmi, unfreeze_seconds))

    async def unfreeze(self, vmi: Instance) -> None:
        """Thaw the guest's file systems."""
        self.host.check(vmi)
        await self.host.to_its_end(self._freezer.thaw())

    async def guest_info(self) -> Json:
        """What the guest agent told."""
        return self.agent.summary()

    async def users(self) -> Sequence[Json]:
        """Who is logged in."""
        return self.agent.users

    async def filesystems(self) -> Sequence[Json]:
        """The guest's file systems."""
        return self.agent.filesystems

    async def guest_agent_version(self) -> str:
        """The guest agent's version."""
        return self.agent.version

    async def agent_data(self, command: str) -> str:
        """What the guest agent answers to a command without arguments."""
        return await self._guest_agent.data(command)

    async def execute(self, domain: str, command: str, arguments: Sequence[str], seconds: int) -> str:
        """Run a command in the guest and return what it printed."""
        return await self._guest_agent.execute(domain, command, arguments, seconds)

    async def guest_ping(self, domain: str) -> None:
        """Ask the guest agent for a sign of life."""
        await self._guest_agent.ping(domain)
