"""What is converted in the benchmarks."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path
from typing import Any

import orjson

from kvnode import ConverterContext

HERE = Path(__file__).resolve().parent
REFERENCE = Path(os.environ.get("REFERENCE", HERE.parent.parent / "shared" / "parity"))
COMMITTED = HERE / "sample.jsonl.xz"

JsonObject = dict[str, Any]


def reference_source() -> Path:
    """The reference cases where they are there, else the committed part of them."""
    whole = REFERENCE / "convert.jsonl.xz"
    return whole if whole.exists() else COMMITTED


def reference_cases() -> list[tuple[bytes, JsonObject]]:
    """The amd64 cases that have a domain: the VMI as compact JSON, and the converter context."""
    with lzma.open(reference_source(), "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    return [
        (orjson.dumps(case["vmi"]), case["context"])
        for case in cases
        if case["context"].get("architecture") == "amd64" and "xml" in case
    ]


def bound(cases: list[tuple[bytes, JsonObject]]) -> list[tuple[bytes, ConverterContext]]:
    """The cases with their contexts prebuilt."""
    return [(vmi, ConverterContext(context)) for vmi, context in cases]


def typical_context() -> JsonObject:
    """A node with KVM, for any of the typical VMIs."""
    return {
        "architecture": "amd64",
        "kvmAvailable": True,
        "smbios": {"manufacturer": "KubeVirt", "product": "None", "family": "KubeVirt"},
        "memBalloonStatsPeriod": 10,
        "domainAttachmentByInterface": {"default": "tap"},
        "disksInfo": {f"disk-{i}": {"format": "qcow2"} for i in range(0, 16_001, 4)},
    }


def typical_vmi(disks: int, name: str = "web-0") -> JsonObject:
    """A defaulted VMI as people run them, with so many disks: container disks, claims, empty disks and seeds."""
    devices = {
        "disks": [{"name": f"disk-{i}", "disk": {"bus": "virtio"}} for i in range(disks)],
        "interfaces": [
            {"name": "default", "masquerade": {}, "model": "virtio", "macAddress": "02:00:00:00:00:01"}
        ],
        "rng": {},
    }
    sources: list[JsonObject] = [
        {"containerDisk": {"image": "registry.example/images/linux:1"}},
        {"persistentVolumeClaim": {"claimName": "data"}},
        {"emptyDisk": {"capacity": "2Gi"}},
        {"cloudInitNoCloud": {"userData": "#cloud-config\npassword: example\nchpasswd: { expire: False }\n"}},
    ]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "namespace": "shop", "uid": "5d9a1a9e-4b1f-4a55-9d0f-8c5c3b8f6f0e"},
        "spec": {
            "architecture": "amd64",
            "domain": {
                "cpu": {"cores": 2, "sockets": 1, "threads": 1, "maxSockets": 4, "model": "host-model"},
                "devices": devices,
                "features": {"acpi": {"enabled": True}},
                "firmware": {"uuid": "9f0cf0b4-a7b4-5bd0-bb04-0d6a5ae3e1ff"},
                "machine": {"type": "q35"},
                "memory": {"guest": "4Gi"},
                "resources": {"requests": {"memory": "4Gi"}},
            },
            "networks": [{"name": "default", "pod": {}}],
            "volumes": [{"name": f"disk-{i}", **sources[i % len(sources)]} for i in range(disks)],
        },
    }
