"""Why a guest panicked, as far as QEMU's log tells (``pkg/virt-launcher/virtwrap/util/panic_info.go``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kvnode.virt.domain_json.schema.status import GUEST_PANIC_INFO

#: How much of the log's end is looked at, in bytes: a panic is among the last things.
LOOK_BYTES = 1 << 20

_LINE = re.compile(r"panic\s+(\S+):\s*(.*)")
_ARGUMENT = re.compile(r"arg([1-5])=['\"]?0x([0-9a-fA-F]{1,16})(?![0-9a-fA-F])")

#: What is known of a panic that left no trace.
UNKNOWN_PANIC = "unknown"


def read_panic(log: Path) -> dict[str, Any]:
    """``GUEST_PANIC_INFO`` of the last panic in QEMU's log; of type ``unknown`` when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOOK_BYTES))
            lines = file.read(LOOK_BYTES).decode(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in reversed(lines):
        if match := _LINE.search(line):
            arguments = {f"Arg{number}": int(value, 16) for number, value in _ARGUMENT.findall(match[2])}
            return GUEST_PANIC_INFO.make(Type=match[1], **arguments)
    return GUEST_PANIC_INFO.make(Type=UNKNOWN_PANIC)


def describe_panic(info: dict[str, Any]) -> str:
    """A panic in words; Windows' are told by the five numbers of its blue screen."""
    if info["Type"] == "hyper-v":
        numbers = ", ".join(f"'{_hex(info[f'Arg{number}'])}'" for number in range(1, 6))
        return f"GuestPanicked: {numbers}"
    if info["Type"] == UNKNOWN_PANIC:
        return "GuestPanicked (details unavailable)"
    return f"GuestPanicked: type={info['Type']}"


def _hex(number: int) -> str:
    return f"0x{number:x}"
