"""From a manifest to a VMI that is defaulted and valid."""

from __future__ import annotations

import copy
import re
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.spec.config import ClusterConfig
from kvnode.spec.defaults import apply_defaults
from kvnode.spec.machine import API_VERSION, INSTANCE, MACHINE, TEMPLATE, instance_of
from kvnode.spec.validation import validate
from kvnode.standalone.errors import StandaloneError
from kvnode.standalone.model import StartOptions

_VERSIONS = (API_VERSION, "kubevirt.io/v1alpha3")
# Names become parts of file names and of the domain's name, so they are checked before anything else is done.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST_NAME = 180
_LONGEST_NAMESPACE = 63

#: What standalone mode's "cluster" is like. A VM without interfaces gets masquerade, the one binding there is
#: here.
STANDALONE_CONFIG: Mapping[str, Any] = {
    "developerConfiguration": {"featureGates": ["HostDisk"]},
    "network": {"defaultNetworkInterface": "masquerade"},
}


@dataclass(frozen=True)
class Instance:
    """A VMI as it is started."""

    vmi: dict[str, Any]
    """Defaulted and valid; nothing in it is shared with the manifest."""

    config: Mapping[str, Any]
    """Configuration that it was defaulted and validated with."""

    prefix: str
    """What comes before a field's path in the manifest: ``spec.template.`` for a VirtualMachine, else
    nothing.
    """

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.vmi["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.vmi["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Its UID, new with each start."""
        return str(self.vmi["metadata"]["uid"])


def read_manifest(manifest: Mapping[str, Any], options: StartOptions, architecture: str) -> Instance:
    """Return the instance that a VirtualMachineInstance's or a VirtualMachine's manifest describes.

    Raises StandaloneError, with the field's path in the manifest, for what is wrong with it.
    """
    vmi, prefix = _instance(manifest)
    _name(vmi, options)
    config = _merged(STANDALONE_CONFIG, options.config or {})
    try:
        ClusterConfig.of(config)
    except ValueError as error:
        raise StandaloneError(f"the cluster configuration: {error}") from None
    try:
        defaulted = apply_defaults(vmi, architecture, config)
        causes = validate(defaulted, architecture, config)
    except FieldError as error:
        raise StandaloneError(error.message, field=_path(prefix, error.field)) from None
    if causes:
        more = f" (and {len(causes) - 1} more: see kvnode validate)" if len(causes) > 1 else ""
        raise StandaloneError(causes[0].message + more, field=_path(prefix, causes[0].field))
    return Instance(defaulted, config, prefix)


def _path(prefix: str, field: str) -> str:
    return prefix + field if field.startswith("spec") else field


def _instance(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a copy as a VMI, and the prefix of its paths."""
    if not isinstance(manifest, Mapping):
        raise StandaloneError(f"a manifest must be an object, not {type(manifest).__name__}")
    kind, version = manifest.get("kind"), manifest.get("apiVersion")
    if version not in _VERSIONS:
        raise StandaloneError(f"must be {_VERSIONS[0]}", field="apiVersion")
    if kind == INSTANCE:
        vmi = copy.deepcopy(dict(manifest))
        prefix = ""
    elif kind == MACHINE:
        vmi = _from_template(manifest)
        prefix = f"{TEMPLATE}."
    else:
        raise StandaloneError(f"must be {INSTANCE} or {MACHINE}", field="kind")
    if not isinstance(vmi.get("spec"), dict):
        raise StandaloneError("must be an object", field=f"{prefix}spec")
    vmi.pop("status", None)
    return vmi, prefix


def _from_template(machine: Mapping[str, Any]) -> dict[str, Any]:
    try:
        vmi = instance_of(machine)
    except FieldError as error:
        raise StandaloneError(error.message, field=error.field) from None
    for key in ("instancetype", "preference", "dataVolumeTemplates"):
        if machine["spec"].get(key):
            raise StandaloneError("is not supported in standalone mode", field=f"spec.{key}")
    return vmi


def _name(vmi: dict[str, Any], options: StartOptions) -> None:
    metadata = vmi.get("metadata")
    if metadata is None:
        metadata = vmi["metadata"] = {}
    if not isinstance(metadata, dict):
        raise StandaloneError("must be an object", field="metadata")
    name = options.name or metadata.get("name")
    if not name and isinstance(prefix := metadata.get("generateName"), str) and prefix:
        name = prefix + secrets.token_hex(3)
    metadata["name"] = _checked(name, "metadata.name", _LONGEST_NAME)
    namespace = options.namespace or metadata.get("namespace") or "default"
    metadata["namespace"] = _checked(namespace, "metadata.namespace", _LONGEST_NAMESPACE)
    metadata["uid"] = str(uuid.uuid4())


def _checked(name: object, field: str, longest: int) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > longest:
        shown = f"{name[:40]!r} " if isinstance(name, str) and name else ""
        raise StandaloneError(
            f"{shown}must be at most {longest} lower case letters, digits, '-' and '.'",
            field=field,
        )
    return name


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with ``more`` over it: mappings are merged, lists joined, all else replaced."""
    merged = dict(base)
    for key, value in more.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            merged[key] = [*old, *(item for item in value if item not in old)]
        else:
            merged[key] = value
    return merged
