"""What the cluster's configuration permits, and this node has (``device_controller.go:199-309``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kvnode.agent.devices.offer import GATED, NAMESPACE, Host, Offer, SharedDevice
from kvnode.agent.devices.sockets import RESERVATIONS, Daemon, SharedSocket
from kvnode.agent.devices.sysfs import UsbDevice, mediated_devices, pci_devices, type_name, usb_devices
from kvnode.agent.devices.usb import UsbDevices
from kvnode.agent.devices.vfio import MDEV, PCI, VfioDevices
from kvnode.api.errors import FieldError
from kvnode.spec.config import ClusterConfig
from kvnode.spec.fields import get_bool, get_list, get_string, wrong_type

_ROOT = "spec.configuration.permittedHostDevices."
_CAPACITIES = "sys/fs/cgroup/misc.capacity"
_MOST_GUESTS = 10_000


def permitted_offers(config: ClusterConfig, host: Host) -> dict[str, Offer]:
    """What is to be offered beside the permanent devices, by resource.

    Resources of other providers are left to these.

    Raises:
        FieldError: the configuration is not what it should be.
    """
    found: list[Offer] = [
        SharedDevice(kind, host.devices, host.count) for gate, kind in GATED.items() if config.gate(gate)
    ]
    found += _daemons(config, host)
    permitted = config.permitted_host_devices
    if permitted:
        found += _vfio(permitted, host.sysfs, host.devices)
        found += _usb(permitted, host.sysfs, host.devices)
    return {offer.resource: offer for offer in reversed(found)}


def _daemons(config: ClusterConfig, host: Host) -> Iterator[Offer]:
    if config.persistent_reservation:
        yield SharedSocket(Daemon("pr-helper", RESERVATIONS, is_qemus=True), host.root, host.count)
    guests = _trusted_guests(host.root / _CAPACITIES) if config.gate("WorkloadEncryptionTDX") else 0
    if guests > 0:
        daemon = Daemon("tdx", config.qgs_socket_path, may_be_absent=not config.tdx_attestation_enforced)
        yield SharedSocket(daemon, host.root, guests)


def _trusted_guests(capacities: Path) -> int:
    """How many TDX guests the node can have; 0 when it does not say."""
    try:
        lines = [line.split() for line in capacities.read_text().splitlines()]
    except OSError:
        return 0
    found = [words[1] for words in lines if len(words) == 2 and words[0] == "tdx"]
    return min(int(found[0]), _MOST_GUESTS) if found and found[0].isascii() and found[0].isdigit() else 0


def _vfio(permitted: Mapping[str, Any], sysfs: Path, devices: Path) -> Iterator[Offer]:
    if pci := _selectors(permitted, "pciHostDevices", "pciVendorSelector"):
        selected = {selector.lower(): resource for selector, resource in pci}
        yield from _by_resource(selected, PCI, pci_devices(sysfs), devices)
    if mediated := _selectors(permitted, "mediatedDevices", "mdevNameSelector"):
        selected = {type_name(selector): resource for selector, resource in mediated}
        yield from _by_resource(selected, MDEV, mediated_devices(sysfs), devices)


def _by_resource(
    selected: Mapping[str, str], prefix: str, found: Sequence[Any], devices: Path
) -> Iterator[Offer]:
    for resource in dict.fromkeys(selected.values()):
        mine = [one for one in found if selected.get(one.kind) == resource]
        if mine:
            yield VfioDevices(resource, prefix, mine, devices)


def _usb(permitted: Mapping[str, Any], sysfs: Path, devices: Path) -> Iterator[Offer]:
    wanted: dict[str, list[list[tuple[int, int]]]] = {}
    for path, entry in _entries(permitted, "usb"):
        selectors = [_usb_selector(one, path, n) for n, one in enumerate(get_list(entry, "selectors", path))]
        resource = _resource(entry, path)
        if selectors and not get_bool(entry, "externalResourceProvider", path):
            wanted.setdefault(resource, []).append(selectors)
    free = usb_devices(sysfs) if wanted else []
    for resource, alternatives in wanted.items():
        sets = [one for selectors in alternatives for one in _sets(selectors, free)]
        if sets:
            yield UsbDevices(resource, sets, devices)


def _sets(selectors: Sequence[tuple[int, int]], free: list[UsbDevice]) -> Iterator[tuple[UsbDevice, ...]]:
    """Take sets with one device for each selector out of ``free``, as long as there are whole ones."""
    while True:
        taken: list[UsbDevice] = []
        for selector in selectors:
            fits = (one for one in free if (one.vendor, one.product) == selector and one not in taken)
            if (one := next(fits, None)) is None:
                return
            taken.append(one)
        for one in taken:
            free.remove(one)
        yield tuple(taken)


def _usb_selector(selector: Any, path: str, number: int) -> tuple[int, int]:
    path = f"{path}selectors[{number}]"
    if not isinstance(selector, Mapping):
        raise wrong_type(path, "a mapping", selector)
    return _hexadecimal(selector, "vendor", f"{path}."), _hexadecimal(selector, "product", f"{path}.")


def _hexadecimal(selector: Mapping[str, Any], key: str, path: str) -> int:
    text = get_string(selector, key, path)
    try:
        return int(text, 16)
    except ValueError:
        raise FieldError(f"{path}{key}", f"must be a hexadecimal number, not {text!r}") from None


def _selectors(permitted: Mapping[str, Any], kind: str, field: str) -> list[tuple[str, str]]:
    """Selectors and their resources, without those of other providers."""
    found = []
    for path, entry in _entries(permitted, kind):
        selector, resource = get_string(entry, field, path), _resource(entry, path)
        if selector and not get_bool(entry, "externalResourceProvider", path):
            found.append((selector, resource))
    return found


def _resource(entry: Mapping[str, Any], path: str) -> str:
    resource = get_string(entry, "resourceName", path)
    namespace, slash, name = resource.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise FieldError(f"{path}resourceName", f"must be like vendor.com/name, not {resource!r}")
    if namespace == NAMESPACE:
        raise FieldError(f"{path}resourceName", f"{NAMESPACE} is for the devices that every node has")
    return resource


def _entries(permitted: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, entry in enumerate(get_list(permitted, kind, _ROOT)):
        path = f"{_ROOT}{kind}[{number}]"
        if not isinstance(entry, Mapping):
            raise wrong_type(path, "a mapping", entry)
        yield f"{path}.", entry
