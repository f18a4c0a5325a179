"""Parts of a node agent that do nothing yet; what a VMI asks of them is refused, or left undone without harm."""

from __future__ import annotations

from kvnode.agent.errors import AgentError
from kvnode.agent.vmi import Vmi, is_hotpluggable, spec, volumes


class NoHotplug:
    """Volumes cannot be plugged into running pods."""

    async def mount(self, vmi: Vmi) -> None:
        """Refuse VMIs that need it."""
        names = [str(volume.get("name")) for volume in volumes(vmi) if is_hotpluggable(volume)]
        names += [str(volume.get("name")) for volume in spec(vmi).get("utilityVolumes") or ()]
        if names:
            raise AgentError(
                f"spec.volumes: {', '.join(names)}: this agent does not plug volumes into running pods yet"
            )

    async def unmount(self, vmi: Vmi) -> None:
        """Nothing was mounted."""

    async def unmount_all(self, vmi: Vmi) -> None:
        """Nothing was mounted."""

    def is_mounted(self, vmi: Vmi, volume: str, pod_uid: str) -> bool:  # noqa: ARG002
        """No."""
        return False


class NoProxy:
    """No migrations: nobody listens."""

    def stop_target(self, uid: str) -> None:
        """Nothing to stop."""

    def stop_source(self, uid: str) -> None:
        """Nothing to stop."""


class NoDownwardMetrics:
    """Guests are told nothing about the host while they run."""

    async def start(self, vmi: Vmi) -> None:
        """Nothing to serve."""

    async def stop(self, vmi: Vmi) -> None:
        """Nothing was served."""


class NoHooks:
    """No plugins."""

    async def call(self, point: str, vmi: Vmi) -> None:
        """Nobody registered."""
