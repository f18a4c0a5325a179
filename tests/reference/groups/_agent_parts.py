"""The node's parts as ``agent_sync`` has them: each writes down that it was called, and fails as the row says."""

from __future__ import annotations

from typing import Any, Protocol


class World(Protocol):
    """What they write into."""

    def did(self, call: str, argument: str = "") -> None:
        """Write a call down, and fail as the row says."""


class Part:
    """One of them."""

    def __init__(self, world: World):
        self.world = world


class ContainerDisks(Part):
    """Container disks."""

    def __init__(self, world: World, row: dict[str, Any]):
        super().__init__(world)
        self._ready = "not ready" not in row.get("note", "") or "volume" in row.get("note", "")

    async def ready(self, _vmi, _since):
        self.world.did("containerDisks.Ready")
        return self._ready

    async def mount(self, _vmi):
        self.world.did("containerDisks.MountAndVerify")

    async def unmount(self, _vmi):
        self.world.did("containerDisks.Unmount")

    async def checksums(self, _vmi):
        return None


class Hotplug(Part):
    """Volumes plugged into the pod; none of them is mounted unless its phase says so already."""

    async def mount(self, _vmi):
        self.world.did("hotplug.Mount")

    async def unmount(self, _vmi):
        self.world.did("hotplug.Unmount")

    async def unmount_all(self, _vmi):
        self.world.did("hotplug.UnmountAll")

    def is_mounted(self, _vmi, _volume, _pod):
        return False


class Network(Part):
    """The pod's network."""

    async def setup(self, _vmi, networks):
        self.world.did("net.Setup", ":" + ",".join(one["name"] for one in networks))

    async def teardown(self, _vmi):
        self.world.did("net.Teardown")

    def forget(self, _vmi):
        self.world.did("netStat.Teardown")

    def pod_addresses(self, _vmi, _network):
        return []


class Runtime(Part):
    """The launcher's processes."""

    async def claim_devices(self, _vmi):
        pass

    async def adjust_resources(self, _vmi):
        self.world.did("runtime.AdjustResources")

    async def housekeeping(self, _vmi, _domain):
        self.world.did("runtime.HandleHousekeeping")

    async def release(self, _vmi):
        pass

    async def selinux_context(self, _vmi):
        return "none"

    async def file_size(self, _vmi, _path):
        return 0


class Proxy(Part):
    """Migration traffic."""

    def stop_target(self, _uid):
        self.world.did("migrationProxy.StopTargetListener")

    def stop_source(self, _uid):
        self.world.did("migrationProxy.StopSourceListener")


class Metrics(Part):
    """Downward metrics."""

    async def start(self, _vmi):
        self.world.did("downwardMetrics.StartServer")

    async def stop(self, _vmi):
        self.world.did("downwardMetrics.StopServer")


class Hooks(Part):
    """Plugins."""

    async def call(self, point, _vmi):
        self.world.did(f"nodeHook.{point}")
