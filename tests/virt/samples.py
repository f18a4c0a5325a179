"""The domains that libvirt is asked about: the committed ones, and the whole reference set where it is there."""

from __future__ import annotations

import json
import lzma
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kvnode
from kvnode.virt.adapt import adapt
from tests.test_reference_cases_convert import NAMES, load

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = Path(os.environ.get("REFERENCE", ROOT / "../shared/parity")) / "convert.jsonl.xz"


@dataclass(frozen=True)
class Sample:
    """One converted domain."""

    name: str
    architecture: str
    vmi: dict[str, Any]
    xml: bytes


def all_samples() -> list[Sample]:
    """Every domain there is; the reference set's first."""
    return [*(_reference() if REFERENCE.is_file() else ()), *_committed()]


def adapted(sample: Sample, libvirt_version: int, *, kvm: bool = True) -> ET.Element:
    """The domain as the launcher gives it to that libvirt, but for the networks of a pod.

    The launcher chooses a disk's cache by what its storage can (pkg/virt-launcher/virtwrap/converter/converter.go:400):
    here all can do without one. Without KVM the domain is one of emulation.
    """
    xml = sample.xml if kvm else sample.xml.replace(b'<domain type="kvm"', b'<domain type="qemu"', 1)
    domain = ET.fromstring(adapt(xml, libvirt_version, standalone=not kvm).xml)
    for driver in domain.iterfind("devices/disk/driver"):
        if not driver.get("cache"):
            driver.set("cache", "none")
    return domain


def _committed() -> Iterator[Sample]:
    for name in NAMES:
        vmi, context = load(name)
        yield Sample(name, context["architecture"], vmi, kvnode.convert(vmi, context))


def _reference() -> Iterator[Sample]:
    with lzma.open(REFERENCE, "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if "error" not in case:
                xml = kvnode.convert(case["vmi"], case["context"])
                yield Sample(case["id"], case["context"]["architecture"], case["vmi"], xml)
