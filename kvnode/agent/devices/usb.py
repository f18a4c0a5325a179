"""USB devices, each for one container, several of them together where the configuration says so (``usb_device.go``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvnode.agent.devices.offer import RefusedError, Unit, node, socket_name_of, variable_of
from kvnode.agent.devices.sysfs import UsbDevice
from kvnode.agent.ownership import QEMU_USER
from kvnode.agent.rootfs import give_away, opened
from kvnode.rpc import deviceplugin_v1beta1_pb2 as api

USB = "USB_RESOURCE"


class UsbDevices:
    """All devices of one resource. A container gets whole sets."""

    def __init__(self, resource: str, sets: Sequence[tuple[UsbDevice, ...]], devices: Path) -> None:
        """`sets` are what a container gets for one, `devices` is the node's ``/dev``."""
        self.resource = resource
        self.socket_name = socket_name_of(resource)
        self._variable = variable_of(USB, resource)
        self._devices = devices
        # Of the devices themselves: kubelet remembers what it gave away, and must find the same after a restart.
        self._sets = {f"{resource}-{'-'.join(one.id for one in found)}": found for found in sets}

    def prepare(self) -> None:
        """Nothing is to be done."""

    def units(self) -> list[Unit]:
        """One for each set; it is healthy when the nodes of all its devices are there."""
        return [Unit(name, all(map(self._is_there, found))) for name, found in self._sets.items()]

    def allocate(self, ids: Sequence[str]) -> api.ContainerAllocateResponse:
        """The nodes, given to QEMU's user on the node itself, and buses and numbers in the environment."""
        answer = api.ContainerAllocateResponse()
        addresses = []
        for name in ids:
            if name not in self._sets:
                raise RefusedError(f"{name}: is not plugged in any more")
            for one in self._sets[name]:
                try:
                    with opened(self._devices, one.path, follow=False) as device:
                        give_away(device, QEMU_USER)
                except OSError as error:
                    raise RefusedError(
                        f"/dev/{one.path}: cannot be given to QEMU's user: {error.strerror}"
                    ) from None
                addresses.append(f"{one.bus}:{one.number}")
                answer.devices.append(node(f"/dev/{one.path}"))
        answer.envs[self._variable] = ",".join(addresses)
        return answer

    def _is_there(self, one: UsbDevice) -> bool:
        return (self._devices / one.path).exists()
