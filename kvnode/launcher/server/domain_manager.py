"""What the command server asks of a domain manager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kvnode.launcher.manager.instance import Instance
from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions

Json = Mapping[str, Any]
"""A value under the names of a table in ``kvnode.virt.payloads`` or ``kvnode.virt.domain_json``."""


class DomainManager(Protocol):
    """Carries requests out. What fails raises; the server tells the agent the error's text."""

    async def sync(
        self, vmi: Instance, options: VirtualMachineOptions | None, plugins: Sequence[Json]
    ) -> None:
        """Make the domain what the VMI says."""

    async def pause(self, vmi: Instance) -> None:
        """Suspend the guest."""

    async def unpause(self, vmi: Instance) -> None:
        """Resume the guest."""

    async def freeze(self, vmi: Instance, unfreeze_seconds: int) -> None:
        """Freeze the guest's file systems; thaw them after ``unfreeze_seconds``, unless that is 0."""

    async def unfreeze(self, vmi: Instance) -> None:
        """Thaw the guest's file systems."""

    async def reset(self, vmi: Instance) -> None:
        """Press the reset button."""

    async def soft_reboot(self, vmi: Instance) -> None:
        """Ask the guest to reboot."""

    async def shutdown(self, vmi: Instance) -> None:
        """Ask the guest to shut down."""

    async def kill(self, vmi: Instance) -> None:
        """End QEMU."""

    async def delete(self, vmi: Instance) -> None:
        """Undefine the domain."""

    async def update_cpus(self, vmi: Instance, options: VirtualMachineOptions | None) -> None:
        """Plug CPUs in or out."""

    async def update_memory(self, vmi: Instance) -> None:
        """Plug memory in or out."""

    async def hotplug_host_devices(self, vmi: Instance) -> None:
        """Plug in host devices that the VMI names and the domain lacks."""

    async def memory_dump(self, vmi: Instance, path: str) -> None:
        """Start to write the guest's memory to ``path``."""

    async def migrate(self, vmi: Instance, options: Json | None) -> None:
        """Start a migration."""

    async def cancel_migration(self, vmi: Instance) -> None:
        """Abort a migration."""

    async def prepare_migration_target(
        self, vmi: Instance, options: VirtualMachineOptions | None, plugins: Sequence[Json]
    ) -> None:
        """Get ready to be migrated to."""

    async def finalize_migration(self, vmi: Instance, options: VirtualMachineOptions | None) -> None:
        """Finish what a migration to this launcher began."""

    async def backup(self, vmi: Instance, options: Json) -> None:
        """Start, export or abort a backup."""

    async def redefine_checkpoint(self, vmi: Instance, checkpoint: Json) -> None:
        """Make a checkpoint known to libvirt again; raises CheckpointInvalidError for one that never will."""

    async def domain(self) -> Json | None:
        """The domain; None when there is none."""

    async def domain_stats(self) -> Json | None:
        """The domain's statistics."""

    async def dirty_rate(self, seconds: float) -> int | None:
        """Megabytes of memory that the guest dirties in a second, measured for ``seconds``."""

    async def guest_info(self) -> Json:
        """What the guest agent told."""

    async def users(self) -> Sequence[Json] | None:
        """Who is logged in."""

    async def filesystems(self) -> Sequence[Json] | None:
        """The guest's file systems."""

    async def guest_agent_version(self) -> str:
        """The guest agent's version; "" when it did not tell."""

    async def agent_data(self, command: str) -> str:
        """What the guest agent answers to a command without arguments."""

    async def execute(self, domain: str, command: str, arguments: Sequence[str], seconds: int) -> str:
        """Run a command in the guest and return what it printed; raises ExecExit for a code that is not 0."""

    async def guest_ping(self, domain: str) -> None:
        """Ask the guest agent for a sign of life."""

    async def qemu_version(self) -> str:
        """QEMU's version."""

    async def sev_info(self) -> Json | None:
        """About the platform's encryption of guests."""

    async def launch_measurement(self, vmi: Instance) -> Json | None:
        """The measurement of an encrypted guest."""

    async def inject_launch_secret(self, vmi: Instance, options: Json) -> None:
        """Hand an encrypted guest its secret."""

    async def screenshot(self, vmi: Instance) -> tuple[str, bytes] | None:
        """Media type and content of a picture of the guest's screen."""
