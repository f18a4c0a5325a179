"""Rules on the fields of an interface (`pkg/network/admitter/netiface.go`)."""

from __future__ import annotations

import itertools
import re

from kvnode.spec.cause import DUPLICATE, shown
from kvnode.spec.validation.names import port_name_fault
from kvnode.spec.validation.review import Json, Review
from kvnode.spec.validation.syntax import PCI_EXAMPLE, is_ipv4, is_mac, is_pci_address

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MODELS = ("e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139", "virtio")
_MOST_PORT_RANGES = 10
_LAST_PORT = 65535


def check_interfaces(review: Review) -> None:
    """Each interface by itself (netiface.go:107)."""
    pods = {network.get("name", "") for network in review.networks if "pod" in network}
    for index, interface in enumerate(review.interfaces):
        path = f"domain.devices.interfaces[{index}]"
        _check_identity(review, path, interface)
        on_pod = interface.get("name", "") in pods
        if on_pod:
            _check_ports(review, f"{path}.ports", interface.get("ports", []))
        _check_port_ranges(review, path, interface, on_pod)
        _check_dhcp(review, path, interface.get("dhcpOptions") or {})


def _check_identity(review: Review, path: str, interface: Json) -> None:
    """Name, model and addresses (netiface.go:127,149,166,181)."""
    name, model = interface.get("name", ""), interface.get("model", "")
    mac, pci = interface.get("macAddress", ""), interface.get("pciAddress", "")
    if _NAME.fullmatch(name) is None:
        review.invalid(f"{path}.name", f"is {shown(name)}: only letters, digits, '-' and '_' are allowed")
    if model and model not in _MODELS:
        review.not_supported(f"{path}.model", f"is {shown(model)}: use one of {', '.join(_MODELS)}")
    if mac and not is_mac(mac):
        message = f"is {shown(mac)}: must be a MAC address such as 02:00:00:12:34:56"
        review.invalid(f"{path}.macAddress", message)
    if pci and not is_pci_address(pci):
        review.invalid(f"{path}.pciAddress", f"is {shown(pci)}: must be a PCI address such as {PCI_EXAMPLE}")


def _check_ports(review: Review, path: str, ports: list[Json]) -> None:
    """Forwarded ports (netiface.go:199-270)."""
    names: set[str] = set()
    for index, port in enumerate(ports):
        name, number = port.get("name", ""), port.get("port", 0)
        if name and name in names:
            review.add(DUPLICATE, f"{path}[{index}].name", f"is {shown(name)} again: names are unique")
        fault = port_name_fault(name) if name else None
        if fault:
            review.invalid(f"{path}[{index}].name", f"is {shown(name)}: {fault}")
        names.add(name)
        if number == 0:
            review.required(f"{path}[{index}].port", f"must be a port from 1 to {_LAST_PORT}")
        elif not 0 < number <= _LAST_PORT:
            review.invalid(f"{path}[{index}].port", f"is {number}: must be from 1 to {_LAST_PORT}")
        protocol = port.get("protocol", "")
        if protocol not in ("", "TCP", "UDP"):
            review.invalid(f"{path}[{index}].protocol", f"is {shown(protocol)}: must be TCP or UDP")


def _check_port_ranges(review: Review, path: str, interface: Json, on_pod: bool) -> None:
    """Ranges of ports: with their gate, alone, and masqueraded (netiface.go:272-319)."""
    ranges = interface.get("portRanges")
    if ranges is None:
        return
    if not review.config.gate("PortRangesSpec"):
        review.invalid(f"{path}.name", "has portRanges, which need the feature gate PortRangesSpec")
    elif on_pod:
        if "ports" in interface:
            review.invalid(f"{path}.name", "has both ports and portRanges: keep one of them")
        if "masquerade" not in interface:
            review.invalid(f"{path}.name", "has portRanges, which need the binding masquerade")
        _check_each_range(review, f"{path}.portRanges", ranges)


def _check_each_range(review: Review, path: str, ranges: list[Json]) -> None:
    """Each range's ends, and no overlap within a protocol (netiface.go:325-408)."""
    if len(ranges) > _MOST_PORT_RANGES:
        review.invalid(path, f"has {len(ranges)} ranges: at most {_MOST_PORT_RANGES} are allowed")
        return
    good: dict[str, list[tuple[int, int]]] = {}
    for index, item in enumerate(ranges):
        protocol, start, end = item.get("protocol", ""), item.get("start", 0), item.get("end", 0)
        where = f"{path}[{index}]"
        if protocol not in ("TCP", "UDP"):
            review.invalid(f"{where}.protocol", f"is {shown(protocol)}: must be TCP or UDP")
        elif not 0 < start <= _LAST_PORT:
            review.invalid(f"{where}.start", f"is {start}: must be from 1 to {_LAST_PORT}")
        elif not 0 < end <= _LAST_PORT:
            review.invalid(f"{where}.end", f"is {end}: must be from 1 to {_LAST_PORT}")
        elif start > end:
            review.invalid(f"{where}.start", f"is {start}: must not exceed end, {end}")
        else:
            good.setdefault(protocol, []).append((start, end))
    for protocol, spans in good.items():
        spans.sort()
        for before, after in itertools.pairwise(spans):
            if after[0] <= before[1]:
                pair = f"{before[0]}-{before[1]} and {after[0]}-{after[1]}"
                review.invalid(path, f"has {protocol} ranges that overlap: {pair}")


def _check_dhcp(review: Review, path: str, options: Json) -> None:
    """Private DHCP options and time servers (netiface.go:410-469; the former reported as the spec itself)."""
    numbers = [option.get("option", 0) for option in options.get("privateOptions", [])]
    if len(set(numbers)) < len(numbers):
        review.invalid("", f"has a DHCP option twice, in {path}.dhcpOptions.privateOptions")
    for number in numbers:
        if not 224 <= number <= 254:
            message = f"must be from 224 to 254: {number} in {path}.dhcpOptions.privateOptions is not"
            review.invalid("", message)
    for index, server in enumerate(options.get("ntpServers", [])):
        if not is_ipv4(server):
            where = f"{path}.dhcpOptions.ntpServers[{index}]"
            review.invalid(where, f"is {shown(server)}: must be an IPv4 address")


RULES = (check_interfaces,)
