"""Values to try in a field's place.

Not a table of what fields do: that is found out by converting. A field that is missing here is tried with
its own value altered; these are for fields that take certain words only, or where words mean more than their
neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["ABSENT_CONTEXT", "COMPANIONS", "UNIONS", "WORDS", "other_values", "probe_values"]

WORDS: Mapping[str, tuple[str, ...]] = {
    "architecture": ("amd64", "arm64", "s390x"),
    "bus": ("virtio", "scsi", "sata", "usb"),
    "cache": ("none", "writethrough", "writeback"),
    "errorPolicy": ("stop", "ignore", "report", "enospace"),
    "format": ("raw", "qcow2"),
    "io": ("native", "threads", "default"),
    "ioThreadsPolicy": ("shared", "auto", "supplementalPool"),
    "model": ("virtio", "e1000", "host-passthrough", "ac97", "ich9"),
    "pageSize": ("2Mi", "1Gi"),
    "policy": ("require", "disable"),
    "protocol": ("TCP", "UDP"),
    "rebootPolicy": ("Reboot", "Terminate"),
    "startStrategy": ("Paused",),
    "state": ("up", "down", "absent"),
    "tickPolicy": ("delay", "catchup", "merge", "discard"),
    "timezone": ("Europe/Berlin",),
    "track": ("guest", "wall"),
    "tray": ("open", "closed"),
    "type": ("tablet", "virtio", "vga", "q35", "Disk", "DiskOrCreate"),
    "action": ("reset", "poweroff", "shutdown"),
    "domainAttachmentByInterface": ("tap", "managedTap"),
}
"""Name of a field -> words that it, or a field of the same name elsewhere, takes."""

UNIONS: tuple[Mapping[str, Any], ...] = (
    {
        "containerDisk": {"image": "x"},
        "persistentVolumeClaim": {"claimName": "x"},
        "emptyDisk": {"capacity": "1Gi"},
        "cloudInitNoCloud": {"userData": "x"},
        "hostDisk": {"path": "/x/x.img", "type": "Disk"},
        "configMap": {"name": "x"},
    },
    {"disk": {}, "lun": {}, "cdrom": {}},
    {"masquerade": {}, "bridge": {}, "sriov": {}},
    {"bios": {}, "efi": {}},
    {"utc": {}, "timezone": "Europe/Berlin"},
    {"pod": {}, "multus": {"networkName": "x"}},
)
"""Members of which an object has one, each with something that it may hold."""

COMPANIONS: Mapping[str, tuple[str, Any]] = {"kvmAvailable": ("allowEmulation", True)}
"""Keys of the context that cannot vary alone, with the member to set beside them."""

ABSENT_CONTEXT: Mapping[str, tuple[Any, ...]] = {
    "kvmAvailable": (True, False),
    "allowEmulation": (True,),
    "architecture": ("arm64", "s390x"),
    "cpuSet": ([0, 1, 2, 3, 4, 5, 6, 7],),
    "smbios": ({"manufacturer": "x", "product": "x", "version": "x", "sku": "x", "family": "x"},),
    "efi": ({"code": "/x/code.fd", "vars": "/x/vars.fd"},),
    "memBalloonStatsPeriod": (10,),
    "freePageReporting": (True,),
    "bochsForEFIGuests": (True,),
    "serialConsoleLog": (True,),
    "pciNUMAAwareTopology": (True,),
}
"""Keys of the context that are no maps by name, with values to try where they are absent."""

_NUMBER = re.compile(r"(\d+)(.*)", re.DOTALL)
_LAST = re.compile(r"[0-9a-zA-Z](?=[^0-9a-zA-Z]*\Z)")


def other_values(key: str, value: Any) -> Iterator[Any]:
    """Values to try in the place of the leaf `value` of the field `key`."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (other for other in (value + 1, value * 2 + 2, value - 1) if -(2**63) <= other < 2**63)
    elif isinstance(value, float):
        yield value + 1
    elif isinstance(value, str):
        yield from _other_texts(key, value)


def _other_texts(key: str, value: str) -> Iterator[str]:
    yield from (word for word in WORDS.get(key, ()) if word != value)
    number = _NUMBER.fullmatch(value)
    if number and len(number[1]) < 15:
        yield f"{int(number[1]) + 1}{number[2]}"  # a quantity, most likely: one more of its unit
        yield f"{int(number[1]) * 2}{number[2]}"
    yield value + "x"
    last = _LAST.search(value)
    if last:  # an address, an identifier: another of the same shape
        other = "1" if last[0] == "0" else "0" if last[0] in "123456789" else "b" if last[0] == "a" else "a"
        yield value[: last.start()] + other + value[last.end() :]


def probe_values(key: str, type_name: str) -> tuple[Any, ...]:
    """Values to try where a field of this type of the API's model is absent."""
    if type_name == "bool":
        return (True, False)
    if type_name in ("string", "any"):
        return WORDS.get(key, ("x",))
    if type_name == "quantity":
        return ("3Gi",)
    if type_name.startswith(("int", "uint")):
        return (2, 3)
    return WORDS.get(type_name[:1].lower() + type_name[1:], ())
