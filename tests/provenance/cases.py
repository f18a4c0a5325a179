"""Instances for the tests of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parents[1] / "reference_cases" / "convert"
NAMES = sorted(path.name for path in CASES.iterdir() if path.is_dir())

VMI: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "prod", "uid": "u-1"},
    "spec": {
        "architecture": "amd64",
        "domain": {
            "cpu": {"cores": 3, "sockets": 2, "threads": 1, "model": "host-passthrough"},
            "memory": {"guest": "64Mi"},
            "machine": {"type": "q35"},
            "firmware": {"uuid": "11111111-2222-3333-4444-555555555555", "serial": "s-42"},
            "features": {"acpi": {"enabled": True}},
            "devices": {
                "disks": [
                    {"name": "root", "disk": {"bus": "virtio"}, "cache": "writethrough", "bootOrder": 1},
                    {"name": "data", "disk": {"bus": "scsi"}, "serial": "d-7"},
                    {"name": "iso", "cdrom": {"bus": "sata"}},
                ],
                "interfaces": [{"name": "default", "masquerade": {}, "macAddress": "02:00:00:00:00:01"}],
                "rng": {},
                "watchdog": {"name": "dog", "i6300esb": {"action": "poweroff"}},
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [
            {"name": "root", "containerDisk": {"image": "registry/x:1"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "iso", "persistentVolumeClaim": {"claimName": "iso"}},
        ],
    },
}

CONTEXT: dict[str, Any] = {
    "architecture": "amd64",
    "kvmAvailable": True,
    "smbios": {"family": "KubeVirt", "manufacturer": "Makers"},
    "disksInfo": {"root": {"format": "qcow2"}},
    "domainAttachmentByInterface": {"default": "tap"},
    "memBalloonStatsPeriod": 10,
    "isBlockPVC": {"data": True},
}


def load(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """VMI and context of a reference case."""
    vmi, context = (
        yaml.safe_load((CASES / name / file).read_text()) for file in ("vmi.yaml", "context.yaml")
    )
    return vmi, context
