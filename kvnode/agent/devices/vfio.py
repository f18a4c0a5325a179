"""PCI and mediated devices, each for one container (``pci_device.go``, ``mediated_device.go``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvnode.agent.devices.offer import RefusedError, Unit, node, socket_name_of, variable_of
from kvnode.agent.devices.sysfs import Passed
from kvnode.rpc import deviceplugin_v1beta1_pb2 as api

PCI, MDEV = "PCI_RESOURCE", "MDEV_PCI_RESOURCE"
"""Variables that tell the launcher its addresses (``staging/src/kubevirt.io/api/core/v1/types.go``)."""


class VfioDevices:
    """All devices of one resource. A container gets whole IOMMU groups."""

    def __init__(self, resource: str, prefix: str, found: Sequence[Passed], devices: Path) -> None:
        """`prefix` is `PCI` or `MDEV`, `devices` the node's ``/dev``."""
        self.resource = resource
        self.socket_name = socket_name_of(resource)
        self.found = tuple(found)
        self._variable = variable_of(prefix, resource)
        self._groups = {one.group: one for one in found}
        self._folder = devices / "vfio"

    def prepare(self) -> None:
        """Nothing is to be done."""

    def units(self) -> list[Unit]:
        """One for each group; it is as healthy as its node is there."""
        return [Unit(group, self._is_there(group), one.numa_node) for group, one in self._groups.items()]

    def allocate(self, ids: Sequence[str]) -> api.ContainerAllocateResponse:
        """Nodes of the groups, and the addresses of their devices in the container's environment."""
        answer = api.ContainerAllocateResponse(devices=[node("/dev/vfio/vfio")])
        addresses = []
        for group in ids:
            one = self._groups.get(group)
            if one is None:
                raise RefusedError(f"IOMMU group {group}: no device of this resource is in it (any more)")
            if not self._is_there(group):
                raise RefusedError(f"{one.address}: /dev/vfio/{group} is gone")
            addresses.append(one.address)
            answer.devices.extend(node(f"/dev/vfio/{name}") for name in (group, *one.nodes))
        answer.envs[self._variable] = ",".join(addresses)
        return answer

    def _is_there(self, group: str) -> bool:
        return (self._folder / group).exists()
