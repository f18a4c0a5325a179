"""Interfaces of a running guest: plugged in, pulled out, their link up or down
(``pkg/virt-launcher/virtwrap/network/nichotplug.go``).
"""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence

import libvirt

from kvnode.launcher.log import logger
from kvnode.launcher.manager.disks import LIVE_AND_CONFIG, detach
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.xml import name_of, replace_child, target_of, text
from kvnode.net import names


def networks_to_plug(vmi: Instance, live: ET.Element) -> list[str]:
    """Networks that multus has brought into the pod since and the guest does not have."""
    there = {name_of(interface) for interface in live.iterfind("devices/interface")}
    spec = {interface["name"]: interface for interface in vmi.devices.get("interfaces") or []}
    brought = {
        status.get("name")
        for status in vmi.status.get("interfaces") or []
        if "multus-status" in [source.strip() for source in str(status.get("infoSource") or "").split(",")]
    }
    return [
        network["name"]
        for network in vmi.spec.get("networks") or []
        if network["name"] in brought - there
        and (interface := spec.get(network["name"])) is not None
        and interface.get("state") != "absent"
        and "sriov" not in interface
    ]


def plug(domain: libvirt.virDomain, wanted: ET.Element, networks: Sequence[str]) -> None:
    """Plug in the wanted domain's interfaces of these networks. Blocks. Raises libvirtError."""
    for interface in wanted.findall("devices/interface"):
        if name_of(interface) in networks:
            logger.info("plugging in interface %s", name_of(interface))
            domain.attachDeviceFlags(text(interface), LIVE_AND_CONFIG)


def sync_interfaces(domain: libvirt.virDomain, vmi: Instance, wanted: ET.Element, live: ET.Element) -> bool:
    """Pull out interfaces that are to be absent, and set links up or down; True when something was changed.

    Blocks. Raises libvirtError.
    """
    changed = False
    for interface in absent(vmi, live):
        logger.info("pulling out interface %s", name_of(interface))
        changed |= detach(domain, interface)
    for interface in relinked(wanted, live):
        logger.info("setting the link of interface %s", name_of(interface))
        domain.updateDeviceFlags(text(interface), LIVE_AND_CONFIG)
        changed = True
    return changed


def absent(vmi: Instance, live: ET.Element) -> Iterator[ET.Element]:
    """The guest's interfaces that the VMI wants gone. Those with a tap of an older naming are not touched."""
    networks: Mapping[str, Mapping[str, object]] = {
        network["name"]: network for network in vmi.spec.get("networks") or []
    }
    for wanted in vmi.devices.get("interfaces") or []:
        network = networks.get(wanted["name"])
        if wanted.get("state") != "absent" or network is None:
            continue
        tap = names.tap(names.hashed(wanted["name"]), network)
        for interface in live.iterfind("devices/interface"):
            if name_of(interface) == wanted["name"] and target_of(interface) == tap:
                yield interface


def relinked(wanted: ET.Element, live: ET.Element) -> Iterator[ET.Element]:
    """The guest's interfaces whose link is to be in another state, as they are to be."""
    there = {name_of(interface): interface for interface in live.iterfind("devices/interface")}
    for interface in wanted.iterfind("devices/interface"):
        current = there.get(name_of(interface))
        if current is None or _link(current) == _link(interface):
            continue
        made = copy.deepcopy(current)
        # Without the element libvirt would leave the link as it is.
        replace_child(made, "link", {"state": _link(interface)})
        yield made


def _link(interface: ET.Element) -> str:
    link = interface.find("link")
    return "up" if link is None else link.get("state", "up")
