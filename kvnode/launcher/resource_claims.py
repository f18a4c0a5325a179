"""What drivers allocated for the VMI's resource claims: files that kubelet puts into the pod (KEP-5304,
``pkg/dra/utils.go``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance

DIRECTORY = Path("/var/run/kubernetes.io/dra-device-attributes")
_VERSIONS = frozenset(("metadata.resource.k8s.io/v1alpha1",))
_SUFFIX = "-metadata.json"
# Attribute of a device to its name in the converter's context.
_ATTRIBUTES = {"resource.kubernetes.io/pciBusID": "pciBusID", "mdevUUID": "mdevUUID"}


def allocated(vmi: Instance, directory: Path = DIRECTORY) -> dict[str, dict[str, dict[str, str]]]:
    """The context's ``resourceClaims``: claim to request to what identifies its device. Blocks.

    Claims without files are left out: the conversion says which of them a device misses.

    Raises:
        ManagerError: a file is not what it should be, or a request has other than one device.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for claim in vmi.spec.get("resourceClaims") or []:
        name, given = str(claim.get("name") or ""), str(claim.get("resourceClaimName") or "")
        place = directory / "resourceclaims" / given if given else directory / "resourceclaimtemplates" / name
        if not name or "/" in (given or name) or (given or name) in (".", ".."):
            continue
        requests = {}
        for request, files in _requests(place):
            if len(files) != 1:
                raise ManagerError(
                    f"resource claim {name}, request {request}: one driver must have allocated it, not {len(files)}"
                )
            requests[request] = _device(_read(files[0]), name, request)
        if requests:
            found[name] = requests
    return found


def _requests(place: Path) -> Iterator[tuple[str, Sequence[Path]]]:
    try:
        entries = sorted(entry for entry in place.iterdir() if entry.is_dir())
    except OSError:
        return
    for entry in entries:
        files = sorted(entry.glob(f"*{_SUFFIX}"))
        if files:
            yield entry.name, files


def _read(file: Path) -> Mapping[str, Any]:
    """The first object of a version that is known; the same is written once for each version."""
    try:
        text = file.read_text(encoding="utf-8")
        decoder, at = json.JSONDecoder(), 0
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            made, at = decoder.raw_decode(text, at)
            if isinstance(made, dict) and made.get("apiVersion") in _VERSIONS:
                return made
    except (OSError, ValueError, RecursionError) as error:
        raise ManagerError(f"{file}: cannot be read: {error}") from None
    raise ManagerError(f"{file}: holds no metadata of a version that is known here")


def _device(data: Mapping[str, Any], claim: str, request: str) -> dict[str, str]:
    for entry in _mappings(data.get("requests")):
        if entry.get("name") != request:
            continue
        devices = _mappings(entry.get("devices"))
        if len(devices) != 1:
            raise ManagerError(
                f"resource claim {claim}, request {request}: must have one device, has {len(devices)}"
            )
        attributes = devices[0].get("attributes")
        made = {}
        for name, field in _ATTRIBUTES.items():
            value = attributes.get(name) if isinstance(attributes, dict) else None
            if isinstance(value, dict) and isinstance(value.get("string"), str):
                made[field] = value["string"]
        return made
    raise ManagerError(f"resource claim {claim}: its metadata do not name request {request}")


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
