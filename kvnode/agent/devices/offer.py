"""What a device plugin offers, and the simplest of it: devices that many pods share."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kvnode.rpc import deviceplugin_v1beta1_pb2 as api

NAMESPACE = "devices.kubevirt.io"
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"
RESERVED = "rwm"
"""What a pod may do with a device that it has for itself."""
_LONGEST_NAME = 48
"""Bytes of a resource's name in that of its socket: both, and kubelet's folder, must fit into a socket's path."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One device that a container can get."""

    id: str
    healthy: bool
    numa_node: int | None = None
    """NUMA node that it is close to; None: that is not known."""


class RefusedError(Exception):
    """A container cannot have the devices that it was to get; the text says why."""


class Offer(Protocol):
    """What is behind one resource. All of it may block, but not for long."""

    @property
    def resource(self) -> str:
        """What pods ask for."""

    @property
    def socket_name(self) -> str:
        """Name of the plugin's socket, unlike any other offer's."""

    def prepare(self) -> None:
        """Called before it is first offered."""

    def units(self) -> Sequence[Unit]:
        """All of them, and how they are now."""

    def allocate(self, ids: Sequence[str]) -> api.ContainerAllocateResponse:
        """What a container gets for these devices; raises RefusedError."""


@dataclass(frozen=True, slots=True)
class Host:
    """Where a node's devices are looked for, as the agent's container has it."""

    devices: Path = Path("/dev")
    sysfs: Path = Path("/sys")
    root: Path = Path("/proc/1/root")
    """The node's root file system."""
    count: int = 1000
    """How many pods may have a shared device."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A device that many pods may have at once: each gets the same node."""

    name: str
    path: str
    """Of the node, and in pods."""
    loads_module: bool = False
    """Whether opening it once makes the kernel load what is behind it."""


PERMANENT = (
    Kind("kvm", "/dev/kvm"),
    Kind("tun", "/dev/net/tun", loads_module=True),
    Kind("vhost-net", "/dev/vhost-net", loads_module=True),
)
"""Those that every node offers."""

GATED = {
    "WorkloadEncryptionSEV": Kind("sev", "/dev/sev", loads_module=True),
    "VSOCK": Kind("vhost-vsock", "/dev/vhost-vsock", loads_module=True),
}
"""Those that feature gates bring (``device_controller.go:219-236``)."""


class SharedDevice:
    """The offer of a `Kind` (``generic_device.go``)."""

    def __init__(self, kind: Kind, devices: Path, count: int) -> None:
        """`devices` is the node's ``/dev``, `count` how many pods may have it."""
        self.kind = kind
        self.resource = f"{NAMESPACE}/{kind.name}"
        self.socket_name = f"kubevirt-{kind.name}.sock"
        self._device = devices / kind.path.removeprefix("/dev/")
        ids = [f"{kind.name}{number}" for number in range(count)]
        self._units = {healthy: tuple(Unit(one, healthy) for one in ids) for healthy in (True, False)}
        self._permissions = permissions()

    def prepare(self) -> None:
        """Have the kernel load the module."""
        if self.kind.loads_module:
            with contextlib.suppress(OSError):
                os.close(os.open(self._device, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))

    def units(self) -> Sequence[Unit]:
        """As many as pods may have it."""
        return self._units[self._device.exists()]

    def allocate(self, ids: Sequence[str]) -> api.ContainerAllocateResponse:  # noqa: ARG002
        """The node, once, however many devices a container asks for."""
        return api.ContainerAllocateResponse(devices=[node(self.kind.path, self._permissions)])


def permissions(cgroups: Path = Path("/sys/fs/cgroup")) -> str:
    """What a pod may do with a device: version 2 of cgroups knows no node without the right to make it."""
    return "rwm" if (cgroups / "cgroup.controllers").exists() else "rw"


def node(path: str, access: str = RESERVED) -> api.DeviceSpec:
    """A device node that a container gets where the node has it."""
    return api.DeviceSpec(host_path=path, container_path=path, permissions=access)


def variable_of(prefix: str, resource: str) -> str:
    """The variable in which the launcher finds addresses (``pkg/util/util.go:89-94``)."""
    return f"{prefix}_{resource.upper().replace('/', '_').replace('.', '_')}"


def socket_name_of(resource: str) -> str:
    """Name of the socket for a resource that the configuration names."""
    # No resource's name has an underscore in front of its slash.
    plain = resource.replace("/", "_")
    if len(os.fsencode(plain)) > _LONGEST_NAME or "\0" in plain:
        plain = hashlib.sha256(resource.encode(errors="replace")).hexdigest()[:32]
    return f"kubevirt-{plain}.sock"
