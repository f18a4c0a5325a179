"""The metadata of both data sources, as JSON in the form that the reference gives it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# A host name is one DNS label (``pkg/util/net/dns/sanitize.go:33``).
_LONGEST_HOSTNAME = 63
# The cluster-wide kind of instance type is named in preference (``pkg/cloud-init/cloud-init.go:120``).
_INSTANCE_TYPES = ("kubevirt.io/cluster-instancetype-name", "kubevirt.io/instancetype-name")
# Go's encoder escapes these in strings.
_ESCAPES = tuple((character, f"\\u{ord(character):04x}") for character in "<>&\u2028\u2029")


@dataclass(frozen=True)
class Metadata:
    """What both data sources tell of a VM; empty strings are left out."""

    instance_type: str = ""
    uuid: str = ""
    hostname: str = ""
    public_keys: Mapping[str, str] = field(default_factory=dict)
    """SSH keys by their number."""


def of_vmi(vmi: Mapping[str, Any], public_keys: Mapping[str, str]) -> Metadata:
    """Return the metadata of a VMI."""
    return Metadata(_instance_type(vmi), _uuid(vmi), _hostname(vmi), public_keys)


def minimal(vmi: Mapping[str, Any]) -> Metadata:
    """Return what is left when a hook dropped the metadata (``pkg/cloud-init/cloud-init.go:578``)."""
    return Metadata(_instance_type(vmi), _uuid(vmi))


def _instance_type(vmi: Mapping[str, Any]) -> str:
    annotations = vmi["metadata"].get("annotations") or {}
    return next((annotations[key] for key in _INSTANCE_TYPES if annotations.get(key)), "")


def _uuid(vmi: Mapping[str, Any]) -> str:
    firmware = vmi["spec"].get("domain", {}).get("firmware")
    if firmware is not None:
        return str(firmware.get("uuid", ""))
    # Loaded here, as hardly any launcher needs it and each pays for what is loaded.
    from uuid import uuid4  # noqa: PLC0415

    return str(uuid4())


def _hostname(vmi: Mapping[str, Any]) -> str:
    # As the pod's (kvnode.spec.pod.metadata): no dash at the end of what was cut off.
    cut = vmi["metadata"]["name"].split(".")[0][:_LONGEST_HOSTNAME].rstrip("-")
    return str(vmi["spec"].get("hostname") or cut)


def no_cloud(metadata: Metadata) -> bytes:
    """Return the content of ``meta-data``."""
    content: dict[str, Any] = {}
    if metadata.instance_type:
        content["instance-type"] = metadata.instance_type
    content["instance-id"] = metadata.uuid
    if metadata.hostname:
        content["local-hostname"] = metadata.hostname
    if metadata.public_keys:
        content["public-keys"] = _sorted(metadata.public_keys)
    return _json(content)


def config_drive(
    metadata: Metadata, vmi: Mapping[str, Any], devices: Sequence[Mapping[str, Any]] | None
) -> bytes:
    """Return the content of ``meta_data.json``; ``devices`` are those of :func:`tagged_devices`."""
    content: dict[str, Any] = {}
    if metadata.instance_type:
        content["instance_type"] = metadata.instance_type
    content["instance_id"] = f"{vmi['metadata']['name']}.{vmi['metadata']['namespace']}"
    if metadata.hostname:
        content["hostname"] = metadata.hostname
    if metadata.uuid:
        content["uuid"] = metadata.uuid
    if devices is not None:
        content["devices"] = [_device(device) for device in devices]
    if metadata.public_keys:
        content["public_keys"] = _sorted(metadata.public_keys)
    return _json(content)


def _device(device: Mapping[str, Any]) -> dict[str, Any]:
    """One device, with the keys in the reference's order (``pkg/cloud-init/cloud-init.go:92``)."""
    written = {key: device.get(key, "") for key in ("type", "bus", "address")}
    written |= {key: device[key] for key in ("mac", "serial", "numaNode", "alignedCPUs") if device.get(key)}
    return written | {"tags": device.get("tags")}


def _sorted(keys: Mapping[str, str]) -> dict[str, str]:
    # By their text: "10" comes before "2".
    return dict(sorted(keys.items()))


def _json(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    for character, escape in _ESCAPES:
        text = text.replace(character, escape)
    # What cannot be written as UTF-8 came out of a VMI's JSON escapes.
    return text.encode("utf-8", "replace")
