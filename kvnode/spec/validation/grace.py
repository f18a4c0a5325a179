"""Rules on GPUs of NVIDIA Grace systems (`grace_io_virtualization.go` of the VMI's admission)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kvnode.spec.cause import INVALID, Cause
from kvnode.spec.validation.review import Review

_GATE = "GraceIOVirtualization"
_NVIDIA = "10DE"
_GRACE_GPUS = frozenset({"2342", "2348", "2941"})  # pkg/util/hardware/grace.go:26
_ID = re.compile(r"[0-9A-F]{4}")
_ROOT_COMPLEX = "kubevirt.io/placePCIDevicesOnRootComplex"
_NO_HOLE = "kubevirt.io/disablePCIHole64"


def check_grace(review: Review) -> None:
    """What passing a Grace GPU through needs (grace_io_virtualization.go:42-134)."""
    requests = _requests(review)
    grace = [path for path, device_id in requests if device_id in _GRACE_GPUS]
    if review.config.gate(_GATE):
        for path, device_id in requests:
            if device_id == "*":
                review.invalid(path, f"must be of an exact pciVendorSelector, with the feature gate {_GATE}")
    if not grace:
        return
    _check_annotations(review)
    if not review.config.gate(_GATE):
        for path in grace:
            review.invalid(path, f"is an NVIDIA Grace GPU, which needs the feature gate {_GATE}")
        return
    if review.architecture != "arm64":
        review.invalid("architecture", "must be arm64 for an NVIDIA Grace GPU")
    machine = (review.domain.get("machine") or {}).get("type", "")
    if not (machine or review.config.machine_type(review.architecture)).startswith("virt"):
        review.invalid("domain.machine.type", "must be virt for an NVIDIA Grace GPU")
    if not review.dedicated_cpus:
        review.required("domain.cpu.dedicatedCpuPlacement", "must be true for an NVIDIA Grace GPU")
    for gate in ("PCINUMAAwareTopology", "IOMMUFD"):
        if not review.config.gate(gate):
            review.invalid("domain.devices", f"has an NVIDIA Grace GPU, which needs the feature gate {gate}")


def _check_annotations(review: Review) -> None:
    """Placements that such a GPU does not bear (grace_io_virtualization.go:136)."""
    annotations = review.metadata.get("annotations", {})
    for name in (_ROOT_COMPLEX, _NO_HOLE):
        if annotations.get(name) == "true":
            message = "must not be true for an NVIDIA Grace GPU"
            review.causes.append(Cause(f"metadata.annotations[{name}]", INVALID, message))


def _requests(review: Review) -> list[tuple[str, str]]:
    """Paths of the devices that are NVIDIA's, with their PCI device id; "*" is any (:159-211)."""
    selectors = _nvidia_selectors(review)
    found = []
    for kind in ("gpus", "hostDevices"):
        for index, device in enumerate(review.devices.get(kind, [])):
            device_id = selectors.get(device.get("deviceName") or "")
            if device_id is not None:
                found.append((f"domain.devices.{kind}[{index}].deviceName", device_id))
    return found


def _nvidia_selectors(review: Review) -> dict[str, str]:
    """Resource name -> PCI device id, of the permitted devices of NVIDIA (pkg/util/hardware/grace.go:70)."""
    permitted = (review.config.permitted_host_devices or {}).get("pciHostDevices")
    result = {}
    for device in permitted if isinstance(permitted, list) else []:
        if not isinstance(device, Mapping):
            continue
        name, selector = device.get("resourceName"), device.get("pciVendorSelector")
        if not (isinstance(name, str) and name and isinstance(selector, str)):
            continue
        vendor, _, device_id = (part.strip().upper().removeprefix("0X") for part in selector.partition(":"))
        if vendor == _NVIDIA and (device_id == "*" or _ID.fullmatch(device_id)):
            result[name] = device_id
        else:
            result.pop(name, None)
    return result


RULES = (check_grace,)
