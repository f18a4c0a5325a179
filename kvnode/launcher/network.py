"""The launcher's half of a pod's network: the guest's taps in the domain, and DHCP for the guest.

The agent's half, done before, made the taps and bridges.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Container, Iterator, Mapping
from typing import Any

from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError
from kvnode.net import links, names
from kvnode.net.dhcp import config
from kvnode.net.dhcp.config import DhcpConfig
from kvnode.net.dhcp.errors import DhcpError
from kvnode.net.dhcp.service import DhcpService
from kvnode.net.links import Link

_REASON = "NetworkFailed"
_TAP = "tap"
_USER_ALIAS = "ua-"


async def plug(
    vmi: Mapping[str, Any],
    domain: ET.Element,
    attachments: Mapping[str, str],
    service: DhcpService,
    networks: Container[str] | None = None,
) -> None:
    """Point the domain's interfaces at their taps, and answer their guests' DHCP from now on.

    ``pkg/network/setup/launcher/configurator.go:86``. ``attachments`` tells how each interface of the VMI is
    attached; only ``tap`` is for the launcher. ``networks`` are those to look at, all of them by default.
    Raises LauncherError when an interface of the pod is missing, or a DHCP server cannot be started.
    """
    for position, interface, network in _tapped(vmi, attachments):
        name = network["name"]
        if networks is not None and name not in networks:
            continue
        try:
            link = _pod_link(vmi, network)
            if link is None:
                raise LauncherError(_REASON, f"network {name}: its interface is not in the pod")
            _point(domain, interface, network, link)
            found = _dhcp(vmi, interface, network, link, position)
            if found is not None:
                await service.ensure(names.bridge(link.name), found, interface.get("dhcpOptions"))
        except (OSError, DhcpError) as error:
            raise LauncherError(_REASON, f"network {name}: {error}") from None


def _tapped(
    vmi: Mapping[str, Any], attachments: Mapping[str, str]
) -> Iterator[tuple[int, Mapping[str, Any], Mapping[str, Any]]]:
    """The interfaces on a tap, each with its place among all and its network."""
    spec = vmi["spec"]
    networks = {network["name"]: network for network in spec.get("networks") or []}
    interfaces = (spec.get("domain", {}).get("devices") or {}).get("interfaces") or []
    for position, interface in enumerate(interfaces):
        name = interface["name"]
        if interface.get("state") != "absent" and attachments.get(name) == _TAP and name in networks:
            yield position, interface, networks[name]


def _pod_link(vmi: Mapping[str, Any], network: Mapping[str, Any]) -> Link | None:
    statuses = (vmi.get("status") or {}).get("interfaces") or []
    for name in names.candidates(network, vmi["spec"].get("networks") or [], statuses):
        link = links.find(name)
        if link is not None:
            return link
    return None


def _point(domain: ET.Element, interface: Mapping[str, Any], network: Mapping[str, Any], link: Link) -> None:
    """Name the tap, and give the guest the pod interface's MTU and MAC address, unless the VMI names one.

    ``pkg/network/domainspec/generators.go:61``. Without a tap of ours, the pod's interface is one.
    """
    element = next(
        (one for one in domain.iterfind("devices/interface") if _alias(one) == interface["name"]), None
    )
    if element is None:
        return
    tap = names.tap(link.name, network)
    target = tap if links.find(tap) is not None else link.name
    mac = (interface.get("macAddress") or link.mac_text).lower().replace("-", ":")
    for tag, attributes in (
        ("mtu", {"size": str(link.mtu)}),
        ("mac", {"address": mac}),
        ("target", {"dev": target, "managed": "no"}),
    ):
        for old in element.findall(tag):
            element.remove(old)
        ET.SubElement(element, tag, attributes)


def _alias(interface: ET.Element) -> str:
    alias = interface.find("alias")
    return "" if alias is None else alias.get("name", "").removeprefix(_USER_ALIAS)


def _dhcp(
    vmi: Mapping[str, Any],
    interface: Mapping[str, Any],
    network: Mapping[str, Any],
    link: Link,
    position: int,
) -> DhcpConfig | None:
    subdomain = str(vmi["spec"].get("subdomain") or "")
    if interface.get("bridge") is not None:
        cache = config.bridge_cache(paths.PRIVATE, link.name)
        nic = links.find(names.nic(link.name))
        mtu = nic.mtu if nic is not None else 0
        found = config.bridge(
            cache.read_bytes(), name=link.name, position=position, mtu=mtu, subdomain=subdomain
        )
        if nic is None and not found.ipam_disabled:
            raise LauncherError(
                _REASON, f"network {network['name']}: {names.nic(link.name)} is not in the pod"
            )
        return found
    if interface.get("masquerade") is not None:
        reached = [address for address in links.addresses(link) if links.is_global_unicast(address)]
        return config.masquerade(
            network,
            name=link.name,
            mtu=link.mtu,
            subdomain=subdomain,
            ipv4=any(address.version == 4 for address in reached),
            ipv6=any(address.version == 6 for address in reached),
        )
    return None
