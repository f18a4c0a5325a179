"""Devices of the node that a pod asks its device plugins, or a driver's claims, for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.spec.fields import get_list, get_string, wrong_type
from kvnode.spec.pod.source import PodSource

DEVICE_PREFIX = "devices.kubevirt.io/"
_PERMITTED_LISTS = ("pciHostDevices", "mediatedDevices", "usb")
_DRA_GATES = {"gpus": "GPUsWithDRA", "hostDevices": "HostDevicesWithDRA"}


def node_devices(source: PodSource) -> list[str]:
    """Devices that any VM may need, of which one is enough (``renderresources.go:466``)."""
    devices, emulated = source.devices, source.config.use_emulation
    wanted = []
    if source.interfaces or devices.get("autoattachPodInterface", True):
        wanted.append("tun")
    virtio = any(interface.get("model") in (None, "", "virtio") for interface in source.interfaces)
    if virtio and not emulated:
        wanted.append("vhost-net")
    if not emulated:
        wanted.append("kvm")
    if devices.get("autoattachVSOCK", False):
        wanted.append("vhost-vsock")
    return [DEVICE_PREFIX + name for name in wanted]


def passed_through(source: PodSource) -> list[str]:
    """Resources of which the pod gets one for each time that they are listed (``template.go:1652-1670``).

    Raises:
        FieldError: a GPU or host device is not permitted in this cluster.
    """
    _check_permitted(source)
    found: list[str] = []
    if not source.config.gate("ExternalNetResourceInjection"):
        resources = source.surroundings.network_resources
        networks = [n.get("name", "") for n in source.spec.get("networks", ()) if "multus" in n]
        found += [resources[name] for name in networks if resources.get(name)]
    for kind in ("gpus", "hostDevices"):
        for device in source.devices.get(kind, ()):
            if device.get("deviceName") and not _claims(device):
                found.append(device["deviceName"])
    security = source.domain.get("launchSecurity", {})
    if "sev" in security or "snp" in security:
        found.append(DEVICE_PREFIX + "sev")
    if "tdx" in security:
        found.append(DEVICE_PREFIX + "tdx")
    if any(disk.get("lun", {}).get("reservation", False) for disk in source.devices.get("disks", ())):
        found.append(DEVICE_PREFIX + "pr-helper")
    if source.config.gate("IOMMUFD"):
        found.append(DEVICE_PREFIX + "iommufd")
    return found


def resource_claims(source: PodSource) -> list[dict[str, str]]:
    """The claims of dynamic resource allocation that the container uses."""
    wanted: list[Mapping[str, Any]] = []
    for kind, gate in _DRA_GATES.items():
        if source.config.gate(gate):
            devices = source.devices.get(kind, ())
            wanted += [device for device in devices if not device.get("deviceName") and _claims(device)]
    if source.config.gate("NetworkDevicesWithDRA"):
        networks = source.spec.get("networks", ())
        wanted += [network["resourceClaim"] for network in networks if "resourceClaim" in network]
    return [{"name": claim.get("claimName", ""), "request": claim.get("requestName", "")} for claim in wanted]


def _claims(device: Mapping[str, Any]) -> bool:
    return "claimName" in device or "requestName" in device


def _check_permitted(source: PodSource) -> None:
    """Refuse devices that ``permittedHostDevices`` does not list; without that section, none is refused."""
    permitted = source.config.permitted_host_devices
    if permitted is None:
        return
    names = set(_permitted_names(permitted))
    for kind, gate in _DRA_GATES.items():
        for index, device in enumerate(source.devices.get(kind, ())):
            if source.config.gate(gate) and _claims(device):
                continue
            if device.get("deviceName", "") not in names:
                raise FieldError(
                    f"spec.domain.devices.{kind}[{index}].deviceName",
                    f"{device.get('deviceName', '')!r} is not among the permittedHostDevices of this cluster",
                )


def _permitted_names(permitted: Mapping[str, Any]) -> Iterator[str]:
    path = "spec.configuration.permittedHostDevices."
    for kind in _PERMITTED_LISTS:
        for index, device in enumerate(get_list(permitted, kind, path)):
            if not isinstance(device, Mapping):
                raise wrong_type(f"{path}{kind}[{index}]", "a mapping", device)
            yield get_string(device, "resourceName", f"{path}{kind}[{index}].")
