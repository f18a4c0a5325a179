"""VMIs to validate: one that is valid, and patches to it."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.spec.validation import validate, warnings

MULTUS = {"name": "blue", "multus": {"networkName": "nad"}}

_VALID: dict[str, Any] = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "metadata": {"name": "vm", "namespace": "default"},
    "spec": {
        "domain": {
            "devices": {
                "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                "interfaces": [{"name": "default", "masquerade": {}}],
            },
            "memory": {"guest": "1Gi"},
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}],
    },
}


def merged(value: Any, patch: Any) -> Any:
    """`value` with `patch` laid over it: objects field by field, all else whole."""
    if not isinstance(value, dict) or not isinstance(patch, dict):
        return copy.deepcopy(patch)
    return {**copy.deepcopy(value), **{key: merged(value.get(key), item) for key, item in patch.items()}}


def vmi(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """The valid VMI with a patch over its spec and its metadata."""
    result: dict[str, Any] = merged(_VALID, {"spec": spec or {}, "metadata": metadata})
    return result


def domain(**sections: Any) -> dict[str, Any]:
    """A patch below ``spec.domain``."""
    return {"domain": sections}


def devices(**sections: Any) -> dict[str, Any]:
    """A patch below ``spec.domain.devices``."""
    return domain(devices=sections)


def disk(**fields: Any) -> dict[str, Any]:
    """A patch that makes the one disk (its volume is a PVC) of these fields."""
    return devices(disks=[{"name": "root", **fields}])


def interface(**fields: Any) -> dict[str, Any]:
    """A patch that makes the one interface (its network is the pod's) of these fields, masqueraded."""
    return devices(interfaces=[{"name": "default", "masquerade": {}, **fields}])


def volume(**source: Any) -> dict[str, Any]:
    """A patch that makes the one volume of this source."""
    return {"volumes": [{"name": "root", **source}]}


def found(
    spec: dict[str, Any],
    architecture: str = "amd64",
    gates: tuple[str, ...] = (),
    off: tuple[str, ...] = (),
    **config: Any,
) -> list[str]:
    """Fields that `validate` finds fault with in the patched VMI, ``spec.`` left out, in order."""
    config["developerConfiguration"] = {"featureGates": list(gates), "disabledFeatureGates": list(off)}
    return [cause.field.removeprefix("spec.") for cause in validate(vmi(spec), architecture, config)]


def warned(spec: dict[str, Any], architecture: str = "amd64") -> list[str]:
    """Fields that `warnings` names in the patched VMI, which is valid otherwise."""
    assert found(spec, architecture) == []
    return [cause.field.removeprefix("spec.") for cause in warnings(vmi(spec), architecture)]
