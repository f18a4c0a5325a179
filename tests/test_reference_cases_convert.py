"""The reference's domains for some thirty readable VMIs, one a feature.

Each directory holds ``vmi.yaml``, ``context.yaml`` and ``domain.xml``. ``pytest --regenerate`` writes the domains
anew from the other two: look at what changed before committing it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

import kvnode
from tests.converter.domains import differences

CASES = Path(__file__).parent / "reference_cases" / "convert"
NAMES = sorted(path.name for path in CASES.iterdir() if path.is_dir())


def load(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A case's VMI and converter context."""
    vmi, context = (
        yaml.safe_load((CASES / name / file).read_text()) for file in ("vmi.yaml", "context.yaml")
    )
    return vmi, context


def pretty(xml: bytes) -> str:
    """A domain with an element a line."""
    ET.register_namespace("qemu", "http://libvirt.org/schemas/domain/qemu/1.0")
    ET.register_namespace("kubevirt", "http://kubevirt.io")
    root = ET.fromstring(xml)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def test_there_are_cases() -> None:
    assert len(NAMES) >= 25


@pytest.mark.parametrize("name", NAMES)
def test_domain(name: str, request: pytest.FixtureRequest) -> None:
    vmi, context = load(name)
    xml = kvnode.convert(vmi, context)
    file = CASES / name / "domain.xml"
    if request.config.getoption("--regenerate"):
        file.write_text(pretty(xml))
    assert differences(file.read_text(), xml) == []


@pytest.mark.parametrize(
    ("expected", "got", "count"),
    [
        ("<a><b/><c/></a>", "<a><c/><b/></a>", 0),
        ('<a><b x="1"/><b x="2"/></a>', '<a><b x="2"/><b x="1"/></a>', 2),
        ('<a x=""/>', "<a/>", 0),
        ("<a><chassis/></a>", "<a/>", 0),
        ("<a><acpi/></a>", "<a/>", 1),
        ('<a><memory unit="MiB">1</memory></a>', "<a><memory>1024</memory></a>", 0),
        ('<a><memory unit="MiB">1</memory></a>', "<a><memory>1000</memory></a>", 1),
        ("<a> <b>x</b> </a>", "<a><b>x</b></a>", 0),
        ("<a><b>x</b></a>", "<a><b>y</b></a>", 1),
        ('<a><b y="1"/></a>', '<a><b y="1" z="2"/></a>', 1),
    ],
)
def test_differences_that_count(expected: str, got: str, count: int) -> None:
    assert len(differences(expected, got)) == count
