"""What a running guest can take of its disks and interfaces, each judged together with its volume or
network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from kvnode.provenance.live import Verdict

__all__ = ["disk_verdict", "interface_verdict"]

Json: TypeAlias = Mapping[str, Any]

_TARGETS = ("disk", "lun", "cdrom")
_PLUGGABLE_BUSES = ("virtio", "scsi", "")


def disk_verdict(
    disks: tuple[Json | None, Json | None],
    volumes: tuple[Json | None, Json | None],
    *,
    room: bool,
    copies: bool,
) -> Verdict:
    """Whether a disk and its volume can change: as they run and as they are wanted, None where they are not
    there.

    `room`: the running machine has ports to plug into. `copies`: volumes may be replaced by copying their
    content (``updateVolumesStrategy: Migration`` of the VirtualMachine).
    The rules: ``pkg/virt-controller/watch/vm/vm.go:2902-2976``, ``pkg/storage/hotplug``,
    ``pkg/virt-launcher/virtwrap/manager.go:1485-1895``.
    """
    (disk, new_disk), (volume, new_volume) = disks, volumes
    if copies:
        return _copied(disk, new_disk, volume, new_volume)
    if disk is not None and new_disk is not None and "cdrom" in disk and "cdrom" in new_disk:
        return _media(disk == new_disk, volume, new_volume)
    if disk is not None and "cdrom" in disk:
        return Verdict(False, "a CD-ROM drive stays in a running guest: only its medium can go")
    if any(v is not None and not _is_pluggable(v) for v in (volume, new_volume)):
        return Verdict(False, "the volume is not hotpluggable")
    if volume is None and new_volume is None:
        return Verdict(False, "a drive without a volume cannot be plugged")
    if not room:
        return Verdict(
            False, "the running guest has no place to plug disks into: devices.disableHotplug is set"
        )
    if disk != new_disk and volume is not None and volume == new_volume:
        return Verdict(False, "a disk stays as it was plugged in: unplug and plug it again, or restart")
    for one in (disk, new_disk):
        if one is not None and _bus(one) not in _PLUGGABLE_BUSES:
            return Verdict(False, f"disks on the {_bus(one)} bus cannot be plugged: virtio and scsi can")
    if new_volume is None:
        return Verdict(True, "the disk is unplugged")
    return Verdict(
        True,
        "the disk is plugged in" if volume is None else "the disk is unplugged, and the new one plugged in",
    )


def _media(same_drive: bool, volume: Json | None, new_volume: Json | None) -> Verdict:
    if not same_drive:
        return Verdict(False, "a CD-ROM drive stays as it is in a running guest: only its medium can change")
    if any(v is not None and not _is_pluggable(v) for v in (volume, new_volume)):
        return Verdict(False, "the medium is not hotpluggable")
    if new_volume is None:
        return Verdict(True, "the medium is taken out")
    return Verdict(True, "the medium is put in" if volume is None else "the medium is changed")


def _copied(
    disk: Json | None, new_disk: Json | None, volume: Json | None, new_volume: Json | None
) -> Verdict:
    """``pkg/virt-controller/watch/volume-migration/volume-migration.go:140-210``."""
    claims = ("persistentVolumeClaim", "dataVolume")
    if any(v is None or not any(claim in v for claim in claims) for v in (volume, new_volume)):
        return Verdict(
            False, "only claims and data volumes are replaced where updateVolumesStrategy is Migration"
        )
    if disk is None or disk != new_disk:
        return Verdict(
            False, "a disk stays as it is while its volume is copied, and file systems are not copied"
        )
    if "lun" in disk or disk.get("shareable") is True:
        return Verdict(False, "LUNs and shareable disks are not copied")
    return Verdict(True, "the volume's content is copied during a live migration")


def _is_pluggable(volume: Json) -> bool:
    sources = (volume.get(name) for name in ("persistentVolumeClaim", "dataVolume", "memoryDump"))
    return any(isinstance(source, Mapping) and source.get("hotpluggable") is True for source in sources)


def _bus(disk: Json) -> str:
    target: Json = next((disk[name] for name in _TARGETS if isinstance(disk.get(name), Mapping)), {})
    return str(target.get("bus") or "")


def interface_verdict(
    interfaces: tuple[Json | None, Json | None], networks: tuple[Json | None, Json | None]
) -> Verdict:
    """Whether an interface and its network can change: as they run and as they are wanted, None where not
    there.

    The rules: ``pkg/network/vmliveupdate/restart.go:34``, ``pkg/network/controllers/vm.go:149``,
    ``pkg/network/migration/evaluator.go:92``, ``pkg/network/admitter/admit.go:30-75``.
    """
    (interface, new_interface), (network, new_network) = interfaces, networks
    if interface is None and new_interface is not None:
        return _plugged(new_interface, new_network)
    if interface is None or new_interface is None:
        return Verdict(
            False, "an interface goes from a running guest by its state, absent, and not by leaving it out"
        )
    if _without(interface, "state") != _without(new_interface, "state"):
        return Verdict(
            False, "of an interface that is there, a running guest takes a new state and no other change"
        )
    if _without_name(network) != _without_name(new_network):
        return Verdict(False, "a network can be replaced by another of the same kind only")
    if network != new_network:
        return Verdict(True, "the guest moves to the other network by a live migration")
    return _state(interface, new_interface, network)


def _plugged(interface: Json, network: Json | None) -> Verdict:
    if network is None or not isinstance(network.get("multus"), Mapping):
        return Verdict(False, "only an interface to a secondary network (multus) can be plugged in")
    if not ("bridge" in interface or "sriov" in interface):
        return Verdict(False, "only interfaces with the bridge or the sriov binding can be plugged in")
    if interface.get("state") == "absent":
        return Verdict(True, "the interface is absent and stays so")
    return Verdict(
        True, "the interface is plugged in, by a live migration where the network needs it in the pod"
    )


def _state(interface: Json, new_interface: Json, network: Json | None) -> Verdict:
    state = new_interface.get("state") or "up"
    if interface.get("state") == "absent":
        return Verdict(False, "an interface that was unplugged does not come back by its state")
    if state == "absent":
        multus = network.get("multus") if network is not None else None
        if "bridge" in interface and isinstance(multus, Mapping) and not multus.get("default"):
            return Verdict(True, "the interface is unplugged")
        return Verdict(
            False, "only an interface with the bridge binding to a secondary network can be unplugged"
        )
    if "sriov" in interface:
        return Verdict(False, "the link state of an SR-IOV interface cannot be set")
    return Verdict(True, f"the link is set {state}")


def _without(value: Json, name: str) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if key != name}


def _without_name(network: Json | None) -> Json | None:
    if network is None or not isinstance(network.get("multus"), Mapping):
        return network
    return {**network, "multus": _without(network["multus"], "networkName")}
