"""A VM as it is shown: its files and its processes put together, none of them trusted to be whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvnode.memory.processes import by_role, in_namespaces_of
from kvnode.standalone import records
from kvnode.standalone.model import VmInfo
from kvnode.standalone.state import VmDirectory

#: Longest path that a unix socket can be reached by.
_LONGEST_SOCKET = 107


def describe(vm: VmDirectory) -> VmInfo:
    """Return what is known of a VM; a file that is missing or damaged leaves its fields empty."""
    status = records.read_json(vm.path / "status.json") or {}
    record = records.read_json(vm.path / "record.json") or {}
    process = vm.process()
    pids = by_role(in_namespaces_of(process.pid)) if process else {}
    uid = _text(record, "uid")
    phase = _text(status, "phase") or ("Scheduled" if process else "Unknown")
    return VmInfo(
        namespace=vm.namespace,
        name=vm.name,
        uid=uid,
        phase=phase,
        reason=_text(status, "reason"),
        message=_text(status, "message"),
        running=process is not None,
        domain_type=_text(record, "domainType"),
        domain_type_reason=_text(record, "domainTypeReason"),
        created=_text(status, "created") or _text(record, "created"),
        started=_text(status, "started"),
        ended=_text(status, "ended"),
        pid=process.pid if process else None,
        pids=pids,
        memory_bytes=_number(record, "memoryBytes"),
        vcpus=_number(record, "vcpus"),
        notes=tuple(str(note) for note in status.get("notes") or () if isinstance(status.get("notes"), list)),
        directory=str(vm.path),
        console=str(console(vm, uid, process)) if process else "",
        libvirt_uri=_libvirt_uri(vm) if process else "",
    )


def console(vm: VmDirectory, uid: str, process: records.Process) -> Path:
    """Return a path of the serial console's socket that is short enough to connect to."""
    inside = f"run/kubevirt-private/{uid}/virt-serial0"
    path = vm.path / inside
    return path if len(os.fsencode(path)) <= _LONGEST_SOCKET else Path(f"/proc/{process.pid}/root/{inside}")


def logs(vm: VmDirectory) -> dict[str, Path]:
    """Return the logs that exist: while the VM runs where they are written, later where they
    were moved to.
    """
    uid = _text(records.read_json(vm.path / "record.json") or {}, "uid")
    candidates = {
        "serial": (vm.path / f"run/kubevirt-private/{uid}/virt-serial0-log", vm.path / "logs/serial.log"),
        "launcher": (vm.path / "launcher.log",),
        "qemu": (vm.path / f"log/qemu/{vm.domain}.log", vm.path / "logs/qemu.log"),
    }
    found = {}
    for name, paths in candidates.items():
        existing = next((path for path in paths if path.is_file()), None)
        if existing is not None:
            found[name] = existing
    return found


def _libvirt_uri(vm: VmDirectory) -> str:
    for socket in ("virtqemud-sock", "libvirt-sock"):
        path = vm.path / "run/libvirt" / socket
        if path.exists():
            return f"qemu+unix:///system?socket={path}"
    return ""


def _text(source: Mapping[str, Any], key: str) -> str:
    value = source.get(key)
    return value if isinstance(value, str) else ""


def _number(source: Mapping[str, Any], key: str) -> int:
    value = source.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
