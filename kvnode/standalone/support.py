"""What standalone mode does not have is refused by name, never dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvnode.standalone.errors import StandaloneError
from kvnode.standalone.manifest import Instance

#: Volume sources that there are here.
VOLUMES = ("containerDisk", "hostDisk", "emptyDisk", "cloudInitNoCloud")

_NEEDS_CLUSTER = "is not supported in standalone mode"

# Path below spec -> why; refused when there is anything at it.
_ABSENT = {
    "accessCredentials": "needs secrets of a cluster",
    "resourceClaims": "needs a cluster's device drivers",
    "utilityVolumes": "needs a cluster's volumes",
    "readinessProbe": "nobody runs probes here",
    "livenessProbe": "nobody runs probes here",
    "domain.launchSecurity": "memory encryption is not set up here",
    "domain.devices.filesystems": "there is no virtiofs daemon here",
    "domain.devices.gpus": "there are no device plugins here",
    "domain.devices.hostDevices": "there are no device plugins here",
    "domain.devices.autoattachVSOCK": "vsock is not set up here",
    "domain.devices.downwardMetrics": "there is no metrics server here",
    "domain.cpu.dedicatedCpuPlacement": "no CPUs are set apart here",
    "domain.cpu.realtime": "no CPUs are set apart here",
    "domain.cpu.numa": "no CPUs are set apart here",
    "domain.devices.tpm.persistent": "there is no storage for its state here",
    "domain.firmware.bootloader.efi.persistent": "there is no storage for its variables here",
    "domain.firmware.acpi": "needs secrets of a cluster",
}
_ANNOTATIONS = {
    "hooks.kubevirt.io/hookSidecars": "there are no sidecar containers here",
    "kubevirt.io/ignitiondata": "ignition is not set up here",
}


def refuse_unsupported(instance: Instance, architecture: str) -> None:
    """Raise StandaloneError for the first thing in the VMI that standalone mode does not have."""
    spec = instance.vmi["spec"]
    for field, why in _findings(instance.vmi, spec, architecture):
        path = instance.prefix + field if field.startswith("spec") else field
        raise StandaloneError(f"{_NEEDS_CLUSTER}: {why}", field=path)


def _findings(
    vmi: Mapping[str, Any], spec: Mapping[str, Any], architecture: str
) -> Iterator[tuple[str, str]]:
    """Yield field and reason of everything unsupported."""
    wanted = spec.get("architecture")
    if wanted and wanted != architecture:
        yield "spec.architecture", f"this machine is {architecture}"
    if spec.get("startStrategy") == "Paused":
        yield "spec.startStrategy", "a paused VM could not be resumed here"
    for path, why in _ABSENT.items():
        if _at(spec, path):
            yield f"spec.{path}", why
    annotations = vmi["metadata"].get("annotations") or {}
    for name, why in _ANNOTATIONS.items():
        if name in annotations:
            yield f"metadata.annotations[{name}]", why
    yield from _volumes(spec)
    yield from _interfaces(spec)


def _at(spec: Mapping[str, Any], path: str) -> bool:
    value: Any = spec
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value is not None and value is not False and value != []


def _volumes(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    known = ", ".join(VOLUMES)
    for index, volume in enumerate(spec.get("volumes") or []):
        for source in volume:
            if source == "name":
                continue
            field = f"spec.volumes[{index}].{source}"
            if source not in VOLUMES:
                yield field, f"the volumes that there are here: {known}"
            elif source == "cloudInitNoCloud":
                for key in ("secretRef", "networkDataSecretRef"):
                    if volume[source].get(key):
                        yield f"{field}.{key}", "there are no secrets here; give the data itself"


def _interfaces(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for index, network in enumerate(spec.get("networks") or []):
        if network.get("multus") is not None:
            yield f"spec.networks[{index}].multus", "there is only the pod network, by QEMU's user networking"
    for index, interface in enumerate(spec.get("domain", {}).get("devices", {}).get("interfaces") or []):
        field = f"spec.domain.devices.interfaces[{index}]"
        for binding in ("bridge", "sriov", "passt", "passtBinding", "slirp", "macvtap", "binding"):
            if interface.get(binding) is not None:
                yield f"{field}.{binding}", "use masquerade, which is QEMU's user networking here"
        if interface.get("dhcpOptions") is not None:
            yield f"{field}.dhcpOptions", "QEMU's user networking has a DHCP server of its own"
