"""What the conversion needs beside the VMI, found out by the caller on the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode._fast.domain import Converter
from kvnode.api.errors import ConversionError
from kvnode.converter.jsonbytes import json_bytes

__all__ = ["ConverterContext"]

_KEYS = frozenset(
    {
        *("architecture", "kvmAvailable", "allowEmulation", "cpuSet", "topology", "isBlockPVC", "isBlockDV"),
        *("disksInfo", "hotplugVolumes", "permanentVolumes", "smbios", "efi", "memBalloonStatsPeriod"),
        *("freePageReporting", "bochsForEFIGuests", "serialConsoleLog", "volumesDiscardIgnore", "applyCBT"),
        *("pciNUMAAwareTopology", "domainAttachmentByInterface", "env", "resourceClaims", "networkInfo"),
    }
)
# Of the mappings in it whose keys are not names that somebody gave.
_INNER_KEYS = {
    "smbios": frozenset({"manufacturer", "product", "version", "sku", "family"}),
    "efi": frozenset({"code", "vars", "secureLoader", "firmwareAutoSelection"}),
}
_SHOWN = 64
"""Characters of a key that errors show."""


class ConverterContext:
    """The node's side of a conversion, bound once; immutable, and shared by any number of threads.

    Made from a mapping with these keys, all optional:

    - `architecture`: amd64, arm64 or s390x
    - `kvmAvailable`, `allowEmulation`: whether KVM works here; whether software emulation may stand in for it
    - `cpuSet`: host CPUs that the VM may use; `topology`: host NUMA cells, as in the cmd.v1 Topology message
    - `isBlockPVC`, `isBlockDV`: volume name -> whether it is a block device
    - `disksInfo`: volume name -> what `qemu-img info` says of its image (`format`, ...)
    - `hotplugVolumes`, `permanentVolumes`: volume name -> its volume status
    - `smbios`: `manufacturer`, `product`, `version`, `sku`, `family`
    - `efi`: `code`, `vars` (paths), `secureLoader`, `firmwareAutoSelection`
    - `memBalloonStatsPeriod`: seconds; `freePageReporting`, `bochsForEFIGuests`, `serialConsoleLog`
    - `volumesDiscardIgnore`: names of volumes whose image is fully allocated on purpose
    - `applyCBT`: volume name -> path of its changed-block-tracking overlay
    - `pciNUMAAwareTopology`
    - `domainAttachmentByInterface`: interface name -> `tap` or `managedTap`
    - `env`: the launcher's environment, where device plugins leave their addresses
    - `resourceClaims`: resource claim -> request -> what its driver allocated (`pciBusID` or `mdevUUID`)
    - `networkInfo`: the multus network-info file, for SR-IOV addresses

    Raises ConversionError, its field starting with `context`, when a key is none of these or has the wrong type.
    """

    __slots__ = ("_converter",)

    def __init__(self, mapping: Mapping[str, Any] | None = None) -> None:
        if mapping is None:
            mapping = {}
        if not isinstance(mapping, Mapping):
            raise ConversionError("context", f"must be a mapping, not {type(mapping).__name__}")
        _check_keys(mapping, _KEYS, "context")
        for name, keys in _INNER_KEYS.items():
            if isinstance(inner := mapping.get(name), Mapping):
                _check_keys(inner, keys, f"context.{name}")
        self._converter = Converter(json_bytes(dict(mapping), "context"))

    def __repr__(self) -> str:
        return "<kvnode.ConverterContext>"


def _check_keys(mapping: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    """A key that is passed over would give another domain than its writer meant."""
    if known.issuperset(mapping):
        return
    # Loaded here: only mistakes pay for it.
    import difflib  # noqa: PLC0415

    key = next(str(key) for key in mapping if key not in known)[:_SHOWN]
    close = difflib.get_close_matches(key, sorted(known), n=1)
    hint = f"did you mean {close[0]}?" if close else "remove it"
    field = f"{where}.{key}" if key.isidentifier() else where
    raise ConversionError(field, f"{key!r} is no key of the converter context: {hint}")
