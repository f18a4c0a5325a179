"""What the agent's decisions are made with: each part as the decisions see it.

Methods that fail raise one of `errors.FAILURES`. Names of operations are those of the reference's own parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from kvnode.agent.domain import Domain
from kvnode.agent.ends import Ends
from kvnode.agent.ghost import Ghost
from kvnode.agent.vmi import Vmi
from kvnode.spec.config import ClusterConfig


class LauncherState(Enum):
    """What is known of the launcher beside a VMI."""

    READY = "ready"
    STARTING = "starting"
    """Its socket is not there yet, and its pod is young."""
    UNRESPONSIVE = "unresponsive"
    """It is gone, or has not answered for longer than the watchdog's time."""


class Launcher(Protocol):
    """A launcher that can be spoken to."""

    async def sync(self, vmi: Vmi, preallocated: Sequence[str]) -> None:
        """SyncVirtualMachine: make the domain what the VMI asks for."""

    async def shutdown(self, vmi: Vmi) -> None:
        """ShutdownVirtualMachine: ask the guest to go."""

    async def kill(self, vmi: Vmi) -> None:
        """KillVirtualMachine: end the guest."""

    async def delete(self, vmi: Vmi) -> None:
        """DeleteVirtualMachine: forget the domain."""

    async def domain(self) -> Mapping[str, Any] | None:
        """GetDomain: the domain as the launcher has it; None when it has none."""

    async def guest_info(self) -> Mapping[str, Any]:
        """GetGuestInfo."""

    async def memory_dump(self, vmi: Vmi, path: str) -> None:
        """VirtualMachineMemoryDump into ``path`` of the launcher."""

    async def hotplug_host_devices(self, vmi: Vmi) -> None:
        """HotplugHostDevices."""


class Launchers(Protocol):
    """The launchers of this node."""

    async def state(self, vmi: Vmi) -> LauncherState:
        """Whether the VMI's launcher can be expected to answer."""

    async def client(self, vmi: Vmi) -> Launcher:
        """A connection to it."""

    async def verified(self, vmi: Vmi) -> Launcher:
        """A connection that has just answered a Ping."""

    def waiting_since(self, vmi: Vmi) -> datetime | None:
        """When the launcher was first looked for; None when it never was."""

    async def close(self, vmi: Vmi) -> None:
        """Close the connection and drop the record of the socket."""


class Api(Protocol):
    """The API server."""

    async def read(self, key: str) -> Vmi | None:
        """A VMI as it is now; None when there is none."""

    async def write_status(self, old: Vmi, new: Vmi) -> None:
        """Write the status of ``new`` over that of ``old``, unless the object has changed since."""


class Recorder(Protocol):
    """Where Events go."""

    def event(self, vmi: Vmi, kind: str, reason: str, message: str) -> None:
        """Record an Event about the VMI; never fails and never waits."""


class Queue(Protocol):
    """The names that wait for their turn."""

    def add_after(self, key: str, delay: float) -> None:
        """Come back to ``key`` in ``delay`` seconds."""

    def add_rate_limited(self, key: str) -> float:
        """Come back to ``key`` as its failures so far allow."""


class Domains(Protocol):
    """The domains that launchers told of."""

    def get(self, key: str) -> Domain | None:
        """The last that was heard; one that is deleted says so itself."""

    def delete(self, key: str) -> None:
        """Forget it."""

    def heard(self, kind: str, raw: Mapping[str, Any], sender: Ghost) -> None:
        """Take news of type ADDED, MODIFIED or DELETED; raises AgentError for news of another's VM."""

    async def deletion(self, key: str, seconds: float) -> None:
        """Wait until the launcher has told that the domain is gone, for ``seconds`` at most."""


class Vmis(Protocol):
    """The VMIs that are labelled with this node's name."""

    def get(self, key: str) -> Vmi | None:
        """The VMI as the watch last gave it; not to be changed."""


class Ghosts(Protocol):
    """Records of launchers that outlive the agent."""

    def last_known_uid(self, key: str) -> str:
        """UID of the VMI that last had the name here; "" when there is no record."""


class Expectations(Protocol):
    """Status writes that the watch has not shown yet."""

    def expect_creations(self, key: str, count: int) -> None:
        """Expect to see so many changes."""

    def clear(self, key: str) -> None:
        """Expect nothing any more."""

    def forget(self, key: str) -> None:
        """The object is gone."""

    def satisfied(self, key: str) -> bool:
        """Whether the watch has shown all of it."""


class ContainerDisks(Protocol):
    """Images of container disks and boot files, mounted into the launcher."""

    async def ready(self, vmi: Vmi, since: datetime) -> bool:
        """Whether the containers that hold them run; waited for since ``since``."""

    async def mount(self, vmi: Vmi) -> None:
        """Mount and check them."""

    async def unmount(self, vmi: Vmi) -> None:
        """Take them away again."""

    async def checksums(self, vmi: Vmi) -> Mapping[str, int] | None:
        """CRC-32 of each disk's image by volume, of boot files under ``KERNEL`` and ``INITRD`` of `status.checksums`;
        None when the containers have ended.
        """


class Hotplug(Protocol):
    """Volumes plugged into a running pod."""

    async def mount(self, vmi: Vmi) -> None:
        """Mount what the spec asks for; HotplugWaitingError while something is not there yet."""

    async def unmount(self, vmi: Vmi) -> None:
        """Unmount what the spec does not ask for any more."""

    async def unmount_all(self, vmi: Vmi) -> None:
        """Unmount everything."""

    def is_mounted(self, vmi: Vmi, volume: str, pod_uid: str) -> bool:
        """Whether a volume of the attachment pod is mounted."""


class Network(Protocol):
    """The pod's network (phase 1), and what is remembered of it."""

    async def setup(self, vmi: Vmi, networks: Sequence[Mapping[str, Any]]) -> None:
        """Set these networks up in the launcher's namespace; CriticalNetworkError when that is final."""

    async def teardown(self, vmi: Vmi) -> None:
        """Remove the files of the set-up."""

    def forget(self, vmi: Vmi) -> None:
        """Drop what was remembered of the VMI's interfaces."""

    def pod_addresses(self, vmi: Vmi, network: str) -> Sequence[str]:
        """Addresses that the pod's interface had at set-up, the preferred one first."""


class Runtime(Protocol):
    """The launcher's processes and files on this node."""

    async def claim_devices(self, vmi: Vmi) -> None:
        """Give device nodes and disk files to the launcher's user; make host disks; allow devices."""

    async def adjust_resources(self, vmi: Vmi) -> None:
        """Raise the limit of locked memory where a device needs it."""

    async def housekeeping(self, vmi: Vmi, domain: Domain | None) -> None:
        """What follows a Sync: dedicated CPUs of helper threads, cgroups."""

    async def release(self, vmi: Vmi) -> None:
        """Take back what was allowed and made for the VM, as far as it is still there."""

    async def selinux_context(self, vmi: Vmi) -> str:
        """SELinux context of the launcher; "none" where there is no SELinux."""

    async def file_size(self, vmi: Vmi, path: str) -> int:
        """Size in bytes of a file in the launcher's root; never looked for outside of it."""


class Proxy(Protocol):
    """Migration traffic."""

    def stop_target(self, uid: str) -> None:
        """Stop listening as a target."""

    def stop_source(self, uid: str) -> None:
        """Stop listening as a source."""


class Metrics(Protocol):
    """Downward metrics for guests."""

    async def start(self, vmi: Vmi) -> None:
        """Serve them to the guest, if it asks for them."""

    async def stop(self, vmi: Vmi) -> None:
        """Serve them no more."""


class Hooks(Protocol):
    """Plugins that are called around a VM's start and end."""

    async def call(self, point: str, vmi: Vmi) -> None:
        """Call all that registered for ``PreVMStart``, ``PostVMStart``, ``PreVMStop`` or ``PostVMStop``."""


class IoRetry(Protocol):
    """Back-off of VMs whose storage fails."""

    def delay(self, uid: str) -> float:
        """Seconds to wait after one more failure; 0: try at once."""


class Limiter(Protocol):
    """How often something is tried for one VMI."""

    def allows(self, uid: str) -> bool:
        """Whether it may be tried now; counts as a try when it may."""

    def forget(self, uid: str) -> None:
        """It succeeded, or the VMI is gone."""


class Clock(Protocol):
    """The time of day."""

    def now(self) -> datetime:
        """Now, with its zone."""


@dataclass(slots=True)
class Parts:
    """Everything that the decisions about one node's VMIs are made with."""

    node: str
    architecture: str
    """The node's, by Kubernetes' name."""
    host_cpu_model: str
    """Model that host-model stands for; "" when the node has none."""
    config: ClusterConfig
    vmis: Vmis
    domains: Domains
    ghosts: Ghosts
    expectations: Expectations
    launchers: Launchers
    api: Api
    recorder: Recorder
    queue: Queue
    disks: ContainerDisks
    hotplug: Hotplug
    network: Network
    runtime: Runtime
    proxy: Proxy
    metrics: Metrics
    hooks: Hooks
    io_retry: IoRetry
    sriov_limiter: Limiter
    clock: Clock
    ends: Ends = field(default_factory=Ends)
