"""Reference domains, adapted, against libvirt's own schema and its own define; docs/libvirt-compatibility.md."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import libvirt
import pytest
from lxml import etree

import kvnode
from tests.documents import with_table
from tests.virt.daemon import LibvirtHost
from tests.virt.refusals import REFUSALS, VMI, Refusal, matching, table
from tests.virt.samples import REFERENCE, ROOT, Sample, adapted, all_samples

SCHEMA = Path("/usr/share/libvirt/schemas/domain.rng")
DOCUMENT = ROOT / "docs/libvirt-compatibility.md"
LIBVIRT_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "s390x": "s390x"}


@cache
def samples() -> list[Sample]:
    return all_samples()


@cache
def installed_libvirt() -> int:
    """The installed libvirt's version, as it numbers them."""
    return int(libvirt.getVersion())


@pytest.mark.skipif(not SCHEMA.exists(), reason="libvirt's schemas are not installed")
def test_every_domain_is_one_of_libvirts_schema() -> None:
    schema = etree.RelaxNG(etree.parse(SCHEMA))
    rows = [row for row in REFUSALS if row.schema and row.holds_for(installed_libvirt())]
    refused = {}
    for sample in samples():
        domain = adapted(sample, installed_libvirt())
        if _is_valid(schema, domain):
            continue
        for row in rows:
            row.cure(domain)
        if not _is_valid(schema, domain):
            refused[sample.name] = str(schema.error_log.last_error)
    assert refused == {}, "a new kind of refusal: adapt it, or give it a row with its reason in refusals.py"


@pytest.fixture(scope="module")
def host() -> Iterator[LibvirtHost]:
    made = LibvirtHost()
    yield made
    made.close()


@pytest.mark.integration
@pytest.mark.parametrize("architecture", ["amd64", "arm64", "s390x"])
def test_libvirt_defines_every_domain(architecture: str, host: LibvirtHost) -> None:
    name = LIBVIRT_ARCHITECTURES[architecture]
    if shutil.which(f"qemu-system-{name}") is None:
        pytest.skip(f"there is no QEMU for {architecture} here")
    kvm = _has_kvm(host, name)
    seen: set[str] = set()
    unknown, unwarned = {}, {}
    for sample in samples():
        if sample.architecture != architecture:
            continue
        problem, rows = _define(host, adapted(sample, host.versions.libvirt, kvm=kvm))
        if problem:
            unknown[sample.name] = problem
        foreseeable = [row.what for row in rows if row.warned]
        if foreseeable and not kvnode.warnings(sample.vmi, architecture):
            unwarned[sample.name] = foreseeable
        seen |= {row.what for row in rows}
    assert unknown == {}, "a new kind of refusal: adapt it, or give it a row with its reason in refusals.py"
    assert unwarned == {}, "kvnode.warnings should have told"
    if REFERENCE.is_file() and architecture == "amd64":
        version = host.versions.libvirt
        rows = [row for row in REFUSALS if row.cause == VMI and row.amd64 and row.holds_for(version)]
        stale = {row.what for row in rows} - seen
        assert stale == set(), "no domain is refused for this any more"


def _is_valid(schema: etree.RelaxNG, domain: ET.Element) -> bool:
    return bool(schema.validate(etree.fromstring(ET.tostring(domain))))


def _has_kvm(host: LibvirtHost, architecture: str) -> bool:
    capabilities = ET.fromstring(host.raw.getCapabilities())
    return capabilities.find(f"guest/arch[@name='{architecture}']/domain[@type='kvm']") is not None


def _define(host: LibvirtHost, domain: ET.Element) -> tuple[str, list[Refusal]]:
    """Define a domain, each time without what was refused, until it is taken.

    Returns what libvirt says when that does not end well, and what was refused before.
    """
    rows: list[Refusal] = []
    for _ in range(2 * len(REFUSALS)):
        xml = ET.tostring(domain, encoding="unicode")
        try:
            host.raw.defineXML(xml).undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_NVRAM)
        except libvirt.libvirtError as error:
            row = matching(str(error), host.versions.libvirt)
            if row is None:
                return str(error), rows
            row.cure(domain)
            rows.append(row)
            if ET.tostring(domain, encoding="unicode") == xml:
                return f"{error} (nothing to take out for it)", rows
            continue
        return "", rows
    return "refused again and again", rows


def test_the_table_is_in_the_documentation(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--regenerate"):
        DOCUMENT.write_text(with_table(DOCUMENT.read_text(), table()))
    assert with_table(DOCUMENT.read_text(), table()) == DOCUMENT.read_text(), "run pytest --regenerate"


def test_each_row_has_a_message_of_its_own() -> None:
    assert len({row.what for row in REFUSALS}) == len(REFUSALS)
    for row in REFUSALS:
        re.compile(row.says)
        assert row.reason.endswith(".")
