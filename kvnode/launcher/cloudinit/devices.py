"""The devices that a VMI tags, with the addresses that libvirt gave them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PCI_DEVICES = Path("/sys/bus/pci/devices")
NODES = Path("/sys/bus/node/devices")

# Before a name in the alias of a device of the user's (``virtwrap/api/schema.go``).
_USER_ALIAS = "ua-"
_SRIOV, _HOST_DEVICE, _GPU = "sriov-", "hostdevice-", "gpu-"


def tagged_devices(vmi: Mapping[str, Any], domain: str | bytes) -> list[dict[str, Any]] | None:
    """Return the devices of ``domain``, a live domain's XML, that the VMI tags; None when there are none.

    ``pkg/virt-launcher/virtwrap/manager.go:2450``. Raises ValueError when ``domain`` is no XML.
    """
    devices = vmi["spec"].get("domain", {}).get("devices") or {}
    nics = _tags(devices.get("interfaces"))
    hosts = _tags(devices.get("hostDevices"))
    if not nics and not hosts:
        return None
    try:
        root = ET.fromstring(domain)  # noqa: S314 - libvirt's
    except ET.ParseError as error:
        raise ValueError(f"the domain is not well-formed XML: {error}") from None
    found = list(_interfaces(root, nics))
    for device in root.iterfind("devices/hostdev"):
        alias = _alias(device)
        placed = _placement(vmi, root, device)
        for kind, tags, prefix in (
            ("nic", nics, _SRIOV),
            ("hostdev", hosts, _HOST_DEVICE),
            ("hostdev", hosts, _GPU),
        ):
            tag = tags.get(alias.removeprefix(prefix))
            if tag is not None:
                found += _described(kind, device, tag, placed)
    return found or None


def _tags(devices: Any) -> dict[str, str]:
    return {device["name"]: device["tag"] for device in devices or [] if device.get("tag")}


def _interfaces(root: ET.Element, tags: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for interface in root.iterfind("devices/interface"):
        tag = tags.get(_alias(interface))
        if tag is not None:
            mac = interface.find("mac")
            yield from _described(
                "nic", interface, tag, {"mac": mac.get("address", "") if mac is not None else ""}
            )


def _alias(device: ET.Element) -> str:
    alias = device.find("alias")
    return alias.get("name", "").removeprefix(_USER_ALIAS) if alias is not None else ""


def _described(kind: str, device: ET.Element, tag: str, more: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    address = device.find("address")
    if address is not None:
        where = _pci_address(address)
        yield {"type": kind, "bus": address.get("type", ""), "address": where, **more, "tags": [tag]}


def _pci_address(address: ET.Element) -> str:
    domain, bus, slot, function = (
        address.get(part, "").removeprefix("0x") for part in ("domain", "bus", "slot", "function")
    )
    return f"{domain}:{bus}:{slot}.{function}"


def _placement(vmi: Mapping[str, Any], root: ET.Element, device: ET.Element) -> dict[str, Any]:
    """Where a host device is near to: its NUMA node, or the guest's CPUs that are pinned to that node's.

    ``pkg/virt-launcher/virtwrap/manager.go:2432``
    """
    address = device.find("source/address")
    cpu = vmi["spec"]["domain"].get("cpu") or {}
    if address is None:
        return {}
    node = _numa_node(_pci_address(address))
    if node is None:
        return {}
    if (cpu.get("numa") or {}).get("guestMappingPassthrough") is not None:
        return {"numaNode": node}
    if not cpu.get("dedicatedCpuPlacement"):
        return {}
    pinned = {pin.get("cpuset", ""): int(pin.get("vcpu", "0")) for pin in root.iterfind("cputune/vcpupin")}
    return {"alignedCPUs": [pinned[str(host)] for host in _cpus(node) if str(host) in pinned]}


def _numa_node(address: str) -> int | None:
    try:
        node = int((PCI_DEVICES / address / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _cpus(node: int) -> list[int]:
    """The host's CPUs of a NUMA node, in order."""
    found: list[int] = []
    try:
        text = (NODES / f"node{node}" / "cpulist").read_text(encoding="ascii").strip()
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    except (OSError, ValueError):
        return []
    return found
