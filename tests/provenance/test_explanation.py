"""Each line of a domain names the field that put it there."""

from __future__ import annotations

import copy
import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import kvnode
from kvnode.provenance import Explanation, Line
from kvnode.provenance.explanation import MOST_VALUES
from tests.provenance.cases import CONTEXT, NAMES, VMI, load

DEVICES = "spec.domain.devices"


@pytest.fixture(scope="module")
def explained() -> dict[str, Line]:
    return kvnode.explain(VMI, CONTEXT).by_path()


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("@type", "context.kvmAvailable"),
        ("name/text()", "metadata.name"),
        ("memory/text()", "spec.domain.memory.guest"),
        ("os/type/@machine", "spec.domain.machine.type"),
        ("os/type/@arch", "context.architecture"),
        ("cpu/@mode", "spec.domain.cpu.model"),
        ("cpu/topology/@cores", "spec.domain.cpu.cores"),
        ("cpu/topology/@sockets", "spec.domain.cpu.sockets"),
        ("cpu/topology/@threads", "spec.domain.cpu.threads"),
        ("sysinfo/system/entry[1]/text()", "spec.domain.firmware.uuid"),
        ("features/acpi", "spec.domain.features.acpi.enabled"),
        ("devices/disk[1]", f"{DEVICES}.disks[0]"),
        ("devices/disk[1]/driver/@cache", f"{DEVICES}.disks[0].cache"),
        ("devices/disk[1]/boot/@order", f"{DEVICES}.disks[0].bootOrder"),
        ("devices/disk[1]/alias/@name", f"{DEVICES}.disks[0].name"),
        ("devices/disk[1]/target/@bus", f"{DEVICES}.disks[0].disk.bus"),
        ("devices/disk[1]/backingStore/format/@type", "context.disksInfo.root.format"),
        ("devices/disk[2]", f"{DEVICES}.disks[1]"),
        ("devices/disk[2]/@type", "spec.volumes[1].persistentVolumeClaim"),
        ("devices/disk[2]/serial/text()", f"{DEVICES}.disks[1].serial"),
        ("devices/disk[2]/target/@dev", f"{DEVICES}.disks[1].disk.bus"),
        ("devices/disk[3]/@device", f"{DEVICES}.disks[2].cdrom"),
        ("devices/interface/mac/@address", f"{DEVICES}.interfaces[0].macAddress"),
        ("devices/rng", f"{DEVICES}.rng"),
        ("devices/watchdog/@action", f"{DEVICES}.watchdog.i6300esb.action"),
        ("devices/memballoon/stats/@period", "context.memBalloonStatsPeriod"),
        ("devices/graphics/listen/@socket", "metadata.uid"),
    ],
)
def test_where_a_line_comes_from(explained: dict[str, Line], line: str, source: str) -> None:
    assert explained[line].sources[0].path == source, explained[line]


def test_values_stand_beside_their_fields(explained: dict[str, Line]) -> None:
    (source,) = explained["cpu/topology/@cores"].sources
    assert (source.kind, source.value) == ("spec", 3)
    assert explained["cpu/topology/@cores"].value == "3"
    assert explained["devices/disk[1]"].value is None


def test_what_the_node_knows_is_named_beside_the_field(explained: dict[str, Line]) -> None:
    assert "context.isBlockPVC.data" in {source.path for source in explained["devices/disk[2]/@type"].sources}


def test_a_name_put_together_has_both_fields(explained: dict[str, Line]) -> None:
    assert {source.path for source in explained["name/text()"].sources} == {
        "metadata.name",
        "metadata.namespace",
    }


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("devices/graphics", "autoattachGraphicsDevice"),
        ("devices/video", "autoattachGraphicsDevice"),
        ("devices/serial", "autoattachSerialConsole"),
        ("devices/memballoon/@model", "useVirtioTransitional"),
    ],
)
def test_defaults_of_what_is_not_set(explained: dict[str, Line], line: str, field: str) -> None:
    unset = [source.path for source in explained[line].sources if source.kind == "unset"]
    assert f"{DEVICES}.{field}" in unset


def test_what_every_domain_has_is_constant(explained: dict[str, Line]) -> None:
    assert explained["memory/@unit"].sources[0].kind == "constant"
    assert explained["."].sources[0].kind == "constant"


def test_what_belongs_to_a_device_has_its_reason(explained: dict[str, Line]) -> None:
    line = explained["devices/rng/backend/@model"]
    assert line.inherited
    assert line.sources[0].path == f"{DEVICES}.rng"


def test_absent_cpu_fields_are_named() -> None:
    vmi = copy.deepcopy(VMI)
    del vmi["spec"]["domain"]["cpu"]
    lines = kvnode.explain(vmi, CONTEXT).by_path()
    assert "spec.domain.cpu" in {source.path for source in lines["cpu/@mode"].sources} | {
        source.path.rpartition(".")[0] for source in lines["cpu/@mode"].sources
    }
    assert [s.kind for s in lines["cpu/topology/@cores"].sources] == ["unset"]


def test_fields_that_defaulting_wrote_are_default() -> None:
    written = {
        "metadata": {"name": "web", "namespace": "prod"},
        "spec": {"domain": {"cpu": {"cores": 3}, "memory": {"guest": "1024Mi"}, "devices": {}}},
    }
    vmi = kvnode.apply_defaults(written, "amd64")
    lines = kvnode.explain(vmi, CONTEXT, written=written).by_path()
    kinds = {path: lines[path].sources[0].kind for path in lines}
    assert kinds["cpu/topology/@cores"] == "spec"
    assert kinds["memory/text()"] == "spec"  # 1Gi now, and the same
    assert kinds["os/type/@machine"] == "default"
    assert kinds["devices/interface"] == "default"
    assert kinds["name/text()"] == "metadata"


def test_pinned_cpus_that_leave_none_over() -> None:
    vmi, context = load("pinned-cpus")
    lines = kvnode.explain(vmi, context).by_path()
    assert lines["cpu/topology/@cores"].sources[0].path == "spec.domain.cpu.cores"
    assert any(s.path.startswith("context.cpuSet") for s in lines["cputune/vcpupin[1]/@cpuset"].sources)


def all_lines(xml: bytes) -> int:
    """Elements, attributes and texts of a domain, counted by another parser."""
    count = 0
    for element in ET.fromstring(xml).iter():
        has_text = len(element) == 0 and (element.text or "").strip()
        count += 1 + len(element.attrib) + (1 if has_text else 0)
    return count


@pytest.mark.parametrize("name", NAMES)
def test_every_line_has_a_source(name: str) -> None:
    vmi, context = load(name)
    untouched = copy.deepcopy((vmi, context))
    explanation = kvnode.explain(vmi, context)
    assert (vmi, context) == untouched
    assert explanation.xml == kvnode.convert(vmi, context)
    assert all(line.sources for line in explanation.lines)
    assert len({line.path for line in explanation.lines}) == len(explanation.lines)
    # names of namespaces are attributes to us and not to ElementTree
    declared = sum("xmlns" in line.path for line in explanation.lines)
    assert len(explanation.lines) - declared == all_lines(explanation.xml)
    known = {*paths_of(vmi, ""), *paths_of(context, "context")}
    for line in explanation.lines:
        for source in line.sources:
            assert source.kind == "constant" or (source.path in known) != (source.kind == "unset"), line


def paths_of(value: Any, path: str) -> list[str]:
    """Every path of a document, as errors write them."""
    if isinstance(value, dict):
        inner = [p for key, v in value.items() for p in paths_of(v, f"{path}.{key}" if path else key)]
    elif isinstance(value, list):
        inner = [p for index, v in enumerate(value) for p in paths_of(v, f"{path}[{index}]")]
    else:
        inner = []
    return [path, *inner]


@pytest.mark.parametrize("name", NAMES[::8])
def test_the_same_answer_every_time(name: str) -> None:
    vmi, context = load(name)
    one: Explanation = kvnode.explain(vmi, context)
    other = kvnode.explain(json.dumps(vmi), dict(context))
    assert one == other


def test_json() -> None:
    lines = kvnode.explain(VMI, CONTEXT).to_json()
    assert json.loads(json.dumps(lines)) == lines
    (cores,) = [line for line in lines if line["path"] == "cpu/topology/@cores"]
    source = {"kind": "spec", "path": "spec.domain.cpu.cores", "value": 3}
    assert cores == {"path": "cpu/topology/@cores", "value": "3", "inherited": False, "sources": [source]}


def test_too_large() -> None:
    vmi = copy.deepcopy(VMI)
    vmi["metadata"]["annotations"] = {str(number): "x" for number in range(MOST_VALUES)}
    with pytest.raises(kvnode.ConversionError, match="too large to explain"):
        kvnode.explain(vmi, CONTEXT)


@pytest.mark.parametrize(
    ("vmi", "context", "field"),
    [
        ({"spec": []}, CONTEXT, "spec"),
        ("[]", CONTEXT, ""),
        ("{", CONTEXT, ""),
        ({}, {"smbios": 1}, "context.smbios"),
        ({}, [], "context"),
        ('{"spec": "\\ud800"}', CONTEXT, ""),
    ],
)
def test_what_does_not_convert(vmi: Any, context: Any, field: str) -> None:
    with pytest.raises(kvnode.ConversionError) as caught:
        kvnode.explain(vmi, context)
    assert caught.value.field == field
