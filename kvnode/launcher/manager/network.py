"""The pod's side of a guest's interfaces: its tap devices go into the domain, and its DHCP servers start
(``pkg/network/setup/launcher/configurator.go``).
"""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvnode.launcher import paths
from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.xml import name_of, replace_child
from kvnode.net import links
from kvnode.net.dhcp import config
from kvnode.net.dhcp.errors import DhcpError
from kvnode.net.dhcp.service import DhcpService

#: The pod's own interface.
PRIMARY = "eth0"
#: The tap device of the primary network's guest interface (``pkg/network/link/names.go``).
PRIMARY_TAP = "tap0"


class PodNetwork:
    """The network of one pod."""

    def __init__(self, dhcp: DhcpService, private: Path = paths.PRIVATE) -> None:
        """``private`` is where the agent leaves what it took from the pod's interfaces."""
        self._dhcp = dhcp
        self._private = private

    async def plug(
        self, vmi: Instance, domain: ET.Element, attachments: Mapping[str, str], networks: Sequence[str]
    ) -> None:
        """Point the domain's interfaces of these networks to their taps and see that their DHCP servers run.

        Those that the agent attached in another way than by a tap are left alone. Raises ManagerError.
        """
        by_name = {interface["name"]: interface for interface in vmi.devices.get("interfaces") or []}
        elements = {name_of(element): element for element in domain.iterfind("devices/interface")}
        for network in vmi.spec.get("networks") or []:
            name = network["name"]
            if name not in networks or attachments.get(name) != "tap":
                continue
            interface = by_name.get(name)
            if interface is None:
                raise ManagerError(f"spec.networks: network {name} has no interface")
            pod_name = pod_interface(vmi, network)
            link = links.find(pod_name)
            if link is None:
                raise ManagerError(f"network {name}: the pod has no interface {pod_name}")
            if name in elements:
                _point(elements[name], interface, network, link)
            await self._serve(vmi, interface, network, pod_name)

    async def _serve(
        self, vmi: Instance, interface: Mapping[str, Any], network: Mapping[str, Any], pod_name: str
    ) -> None:
        try:
            made = self._configuration(vmi, interface, network, pod_name)
            if made is not None:
                await self._dhcp.ensure(bridge_name(pod_name), made, interface.get("dhcpOptions"))
        except (DhcpError, OSError) as error:
            raise ManagerError(f"network {network['name']}: DHCP: {error}") from None

    def _configuration(
        self, vmi: Instance, interface: Mapping[str, Any], network: Mapping[str, Any], pod_name: str
    ) -> config.DhcpConfig | None:
        subdomain = str(vmi.spec.get("subdomain") or "")
        if "bridge" in interface:
            nic = links.find(bridged_name(pod_name))
            names = [entry["name"] for entry in vmi.devices["interfaces"]]
            return config.bridge(
                config.bridge_cache(self._private, pod_name).read_bytes(),
                name=pod_name,
                position=names.index(interface["name"]),
                mtu=0 if nic is None else nic.mtu,
                subdomain=subdomain,
            )
        if "masquerade" in interface:
            link = links.find(pod_name)
            if link is None:
                raise ManagerError(f"network {network['name']}: the pod has no interface {pod_name}")
            return _masquerade(network, link, subdomain)
        return None


def _masquerade(network: Mapping[str, Any], link: links.Link, subdomain: str) -> config.DhcpConfig:
    addresses = [address for address in links.addresses(link) if links.is_global_unicast(address)]
    return config.masquerade(
        network,
        name=link.name,
        mtu=link.mtu,
        subdomain=subdomain,
        ipv4=any(address.version == 4 for address in addresses),
        ipv6=any(address.version == 6 for address in addresses),
    )


def _point(
    element: ET.Element, interface: Mapping[str, Any], network: Mapping[str, Any], link: links.Link
) -> None:
    """Give a domain's interface its tap, the pod link's MTU, and its MAC or the guest's own
    (``pkg/network/domainspec/generators.go``).
    """
    tap = tap_name(link.name, network)
    target = tap if links.find(tap) is not None else link.name
    replace_child(element, "target", {"dev": target, "managed": "no"})
    replace_child(element, "mtu", {"size": str(link.mtu)})
    replace_child(element, "mac", {"address": str(interface.get("macAddress") or link.mac_text)})


def is_secondary(network: Mapping[str, Any]) -> bool:
    """Whether the network is one that multus adds to the pod's own."""
    multus = network.get("multus")
    return multus is not None and not multus.get("default")


def pod_interface(vmi: Instance, network: Mapping[str, Any]) -> str:
    """Name of the pod's interface for a network: by its hash, or by its number where the pod is older
    (``pkg/network/link/discovery.go``).
    """
    if not is_secondary(network):
        for status in vmi.status.get("interfaces") or []:
            if status.get("name") == network["name"] and status.get("podInterfaceName"):
                return str(status["podInterfaceName"])
        return PRIMARY
    hashed = hashed_name(network["name"])
    if links.find(hashed) is None:
        others = [entry["name"] for entry in vmi.spec.get("networks") or [] if is_secondary(entry)]
        ordinal = f"net{others.index(network['name']) + 1}"
        if links.find(ordinal) is not None:
            return ordinal
    return hashed


def hashed_name(network: str) -> str:
    """Name of the pod's interface for a secondary network (``pkg/network/namescheme/networknamescheme.go``)."""
    return "pod" + hashlib.sha256(network.encode()).hexdigest()[:11]


def tap_name(pod_name: str, network: Mapping[str, Any]) -> str:
    """Name of the tap device behind a pod's interface."""
    return "tap" + pod_name[3:] if is_secondary(network) else PRIMARY_TAP


def bridge_name(pod_name: str) -> str:
    """Name of the bridge between a pod's interface and its tap."""
    return "k6t-" + pod_name.removeprefix("pod")


def bridged_name(pod_name: str) -> str:
    """Name that a pod's interface was given when it was put on the bridge."""
    return pod_name.removeprefix("pod") + "-nic"
