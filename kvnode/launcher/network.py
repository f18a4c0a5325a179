"""The launcher's half of a pod's network: the guest's taps in the domain, and DHCP for the guest.

The agent's half, done before, made the taps and bridges.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.manager.xml import name_of, replace_child
from kvnode.net import links, names
from kvnode.net.dhcp import config
from kvnode.net.dhcp.config import DhcpConfig
from kvnode.net.dhcp.errors import DhcpError
from kvnode.net.dhcp.service import DhcpService
from kvnode.net.links import Link

_REASON = "NetworkFailed"
_TAP = "tap"


class PodNetwork:
    """The network of one pod."""

    def __init__(self, dhcp: DhcpService, private: Path = paths.PRIVATE) -> None:
        """``private`` is where the agent leaves what it took from the pod's interfaces."""
        self._dhcp = dhcp
        self._private = private

    async def plug(
        self,
        vmi: Mapping[str, Any],
        domain: ET.Element,
        attachments: Mapping[str, str],
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
                _point(domain, interface, network, link)
                found = self._configuration(vmi, interface, network, link, position)
                if found is not None:
                    await self._dhcp.ensure(names.bridge(link.name), found, interface.get("dhcpOptions"))
            except (OSError, DhcpError) as error:
                raise LauncherError(_REASON, f"network {name}: {error}") from None

    def _configuration(
        self,
        vmi: Mapping[str, Any],
        interface: Mapping[str, Any],
        network: Mapping[str, Any],
        link: Link,
        position: int,
    ) -> DhcpConfig | None:
        """What the guest is to be told by DHCP; None where its binding has no DHCP."""
        subdomain = str(vmi["spec"].get("subdomain") or "")
        if interface.get("bridge") is not None:
            nic = links.find(names.nic(link.name))
            found = config.bridge(
                config.bridge_cache(self._private, link.name).read_bytes(),
                name=link.name,
                position=position,
                mtu=0 if nic is None else nic.mtu,
                subdomain=subdomain,
            )
            if nic is None and not found.ipam_disabled:
                raise _missing(network, names.nic(link.name))
            return found
        if interface.get("masquerade") is not None:
            return _masquerade(network, link, subdomain)
        return None


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


def _pod_link(vmi: Mapping[str, Any], network: Mapping[str, Any]) -> Link:
    """The pod's interface of a network; raises LauncherError when it is not there."""
    statuses = (vmi.get("status") or {}).get("interfaces") or []
    candidates = names.candidates(network, vmi["spec"].get("networks") or [], statuses)
    for name in candidates:
        link = links.find(name)
        if link is not None:
            return link
    raise _missing(network, " or ".join(dict.fromkeys(candidates)))


def _missing(network: Mapping[str, Any], interface: str) -> LauncherError:
    return LauncherError(_REASON, f"network {network['name']}: the pod has no interface {interface}")


def _point(domain: ET.Element, interface: Mapping[str, Any], network: Mapping[str, Any], link: Link) -> None:
    """Name the tap, and give the guest the pod interface's MTU and MAC address, unless the VMI names one.

    ``pkg/network/domainspec/generators.go:61``. Without a tap of ours, the pod's interface is one.
    """
    element = next(
        (one for one in domain.iterfind("devices/interface") if name_of(one) == interface["name"]), None
    )
    if element is None:
        return
    tap = names.tap(link.name, network)
    mac = str(interface.get("macAddress") or link.mac_text).lower().replace("-", ":")
    replace_child(element, "mtu", {"size": str(link.mtu)})
    replace_child(element, "mac", {"address": mac})
    replace_child(
        element, "target", {"dev": tap if links.find(tap) is not None else link.name, "managed": "no"}
    )


def _masquerade(network: Mapping[str, Any], link: Link, subdomain: str) -> DhcpConfig:
    reached = [address for address in links.addresses(link) if links.is_global_unicast(address)]
    return config.masquerade(
        network,
        name=link.name,
        mtu=link.mtu,
        subdomain=subdomain,
        ipv4=any(address.version == 4 for address in reached),
        ipv6=any(address.version == 6 for address in reached),
    )
