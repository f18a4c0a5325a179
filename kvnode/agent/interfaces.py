"""``status.interfaces``: what domain, pod, guest agent and multus each know (``pkg/network/setup/netstat.go``)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from kvnode.agent.domain import Domain, alias_of
from kvnode.agent.vmi import Vmi, by_name, interfaces, spec, status

InterfaceStatus = dict[str, Any]

DOMAIN, GUEST_AGENT, MULTUS = "domain", "guest-agent", "multus-status"
"""Sources of what is known, joined by ", " in ``infoSource``."""

GUEST_ONLY_LIMIT = 10
"""Interfaces that only the guest knows (bridges, containers) are listed up to this many."""

SRIOV_ALIAS_PREFIX = "sriov-"

_SEPARATOR = ", "


class PodAddresses(Protocol):
    """What was remembered of the pod's network."""

    def pod_addresses(self, vmi: Vmi, network: str) -> Sequence[str]:
        """Addresses that the pod's interface had at set-up, the preferred one first."""


def sources_of(interface: Mapping[str, Any]) -> list[str]:
    """Where the status of an interface comes from."""
    text = interface.get("infoSource")
    return str(text).split(_SEPARATOR) if text else []


def interface_statuses(vmi: Vmi, domain: Domain | None, pod: PodAddresses) -> list[InterfaceStatus]:
    """The new ``status.interfaces``; without a domain that lives the present one, if there is any.

    The interface on the pod's network comes first: that is the one that `kubectl get` shows.
    """
    before = list(status(vmi).get("interfaces") or ())
    if domain is None or (before and not domain.is_alive):
        return before  # what the pod had is forgotten with the domain
    asked = by_name(interfaces(vmi))
    found = _from_domain(domain, asked)
    _add_pod_addresses(found, asked, vmi, pod)
    _add_guest_agent(found, domain, asked)
    networks = spec(vmi).get("networks") or ()
    primary = next((str(net.get("name")) for net in networks if net.get("pod") is not None), None)
    if primary is not None:
        _put_first(found, primary, before)
    _add_multus(found, before, asked)
    names = by_name(before)
    for one in found:
        if one.get("name"):
            known = names.get(one["name"], {}).get("podInterfaceName")
            one["podInterfaceName"] = known
    return [{name: value for name, value in one.items() if value} for one in found]


def _from_domain(domain: Domain, asked: Mapping[str, Mapping[str, Any]]) -> list[InterfaceStatus]:
    found: list[InterfaceStatus] = []
    for device in domain.devices("Interfaces"):
        queues = (device.get("Driver") or {}).get("Queues")
        link = device.get("LinkState")
        found.append(
            {
                "name": alias_of(device),
                "mac": (device.get("MAC") or {}).get("MAC"),
                "infoSource": DOMAIN,
                "queueCount": 1 if queues is None else queues,
                "linkState": "up" if link is None else link.get("State"),
            }
        )
    for device in domain.devices("HostDevices"):
        if alias_of(device).startswith(SRIOV_ALIAS_PREFIX):
            name = alias_of(device).removeprefix(SRIOV_ALIAS_PREFIX)
            mac = asked.get(name, {}).get("macAddress")
            found.append({"name": name, "mac": mac, "infoSource": DOMAIN})
    return found


def _add_pod_addresses(
    found: list[InterfaceStatus], asked: Iterable[str], vmi: Vmi, pod: PodAddresses
) -> None:
    for name in asked:
        one = _named(found, name)
        if one is not None:
            _set_addresses(one, pod.pod_addresses(vmi, name))


def _add_guest_agent(
    found: list[InterfaceStatus], domain: Domain, asked: Mapping[str, Mapping[str, Any]]
) -> None:
    guest_only = 0
    for told in domain.state("Interfaces") or ():
        mac, addresses = told.get("Mac") or "", list(told.get("IPs") or ())
        one = next((item for item in found if (item.get("mac") or "") == mac), None)
        if one is not None:
            if asked.get(one.get("name") or "", {}).get("masquerade") is not None:
                # Behind masquerade nobody reaches a link-local address of the guest.
                addresses = [text for text in addresses if not _is_link_local(text)]
            _merge_guest_addresses(one, addresses)
            one["interfaceName"] = told.get("InterfaceName")
            if told.get("InterfaceName"):
                one["infoSource"] = DOMAIN + _SEPARATOR + GUEST_AGENT
        elif guest_only < GUEST_ONLY_LIMIT:
            guest_only += 1
            found.append(
                {
                    "mac": mac,
                    "ipAddress": told.get("Ip"),
                    "ipAddresses": addresses,
                    "interfaceName": told.get("InterfaceName"),
                    "infoSource": GUEST_AGENT,
                }
            )


def _merge_guest_addresses(one: InterfaceStatus, told: Sequence[str]) -> None:
    """The pod's addresses of a family win, unless the guest has none of that family and cannot be reached by it."""
    merged: list[str] = []
    for version in (4, 6):
        pods = _of_version(one.get("ipAddresses") or (), version)
        guests = _of_version(told, version)
        merged += pods if pods and guests else guests
    _set_addresses(one, merged)


def _set_addresses(one: InterfaceStatus, addresses: Sequence[str]) -> None:
    one["ipAddress"] = addresses[0] if addresses else None
    one["ipAddresses"] = list(addresses)


def _put_first(found: list[InterfaceStatus], primary: str, before: list[InterfaceStatus]) -> None:
    one = _named(found, primary)
    if one is not None:
        found.remove(one)
        found.insert(0, one)
    elif _named(before, primary) is not None:
        found.insert(0, {"name": primary})


def _add_multus(found: list[InterfaceStatus], before: list[InterfaceStatus], asked: Iterable[str]) -> None:
    for reported in before:
        if MULTUS not in sources_of(reported):
            continue
        name = str(reported.get("name") or "")
        one = _named(found, name)
        if one is not None:
            if MULTUS not in sources_of(one):
                one["infoSource"] = _SEPARATOR.join([*sources_of(one), MULTUS])
        elif name in asked:
            found.append({"name": name, "infoSource": MULTUS})


def _named(found: list[InterfaceStatus], name: str) -> InterfaceStatus | None:
    return next((one for one in found if (one.get("name") or "") == name), None)


def _of_version(addresses: Iterable[str], version: int) -> list[str]:
    """Addresses of a family, as they are written; what is no address is dropped."""
    return [text for text in addresses if _version_of(text) == version]


def _version_of(text: str) -> int | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return None
        return 4 if address.ipv4_mapped else 6
    return 4


def _is_link_local(text: str) -> bool:
    """Whether it is a link-local address, or none at all."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return True
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_link_local
