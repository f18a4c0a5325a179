"""Situations that users ran into with memory and sizes, with the right numbers. Test ids name the report."""

from __future__ import annotations

import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import kvnode
from kvnode.launcher import empty_disk, paths
from kvnode.launcher.errors import LauncherError
from tests.fast.helpers import MINIMAL_CONTEXT, MINIMAL_VMI, merged

MIB = 2**20
ONE_CPU = {"cores": 1, "sockets": 1, "threads": 1}


def report(*names: str) -> pytest.MarkDecorator:
    """Run a test once, with the report's number in its id."""
    return pytest.mark.parametrize("reported", names)


def overhead(ratio: str | None = None, **domain: Any) -> int:
    vmi = {"metadata": {"name": "t", "namespace": "ns1"}, "spec": {"domain": {"devices": {}, **domain}}}
    return kvnode.memory_overhead(vmi, "amd64", ratio)


@report("B01")
def test_page_tables_are_counted_of_the_memory_request_alone(reported: str) -> None:
    assert overhead(cpu=ONE_CPU, memory={"guest": "64Gi"}) == 281_018_368
    requested = overhead(cpu=ONE_CPU, memory={"guest": "64Gi"}, resources={"requests": {"memory": "64Gi"}})
    assert requested == 281_018_368 + 134_217_728


@report("B03")
def test_dedicated_cpus_cost_a_hundred_mebibytes_more(reported: str) -> None:
    dedicated = {"cpu": {"cores": 4, "dedicatedCpuPlacement": True}, "memory": {"guest": "4Gi"}}
    assert overhead(**dedicated) == 411_041_792
    # Page tables of 4294968 kB, rounded up to the kilobyte, by 512.
    assert overhead(**dedicated, resources={"requests": {"memory": "4Gi"}}) == 411_041_792 + 8_388_609


@report("B04")
@pytest.mark.parametrize("count", [1, 2, 4])
def test_passed_through_devices_cost_a_gibibyte_once(reported: str, count: int) -> None:
    gpus = [{"name": f"g{i}", "deviceName": "vendor.example/gpu"} for i in range(count)]
    with_gpus = overhead(memory={"guest": "100Gi"}, devices={"gpus": gpus})
    assert with_gpus - overhead(memory={"guest": "100Gi"}) == 2**30


@report("B06")
@pytest.mark.parametrize("ratio", [None, "", "1.0", "1.5", "3"])
def test_the_ratio_multiplies_the_computed_overhead_and_nothing_else(
    reported: str, ratio: str | None
) -> None:
    domain = {
        "cpu": {"cores": 1},
        "memory": {"guest": "2Gi"},
        "resources": {"requests": {"memory": "2Gi"}},
    }
    plain = overhead(**domain)
    assert plain == (220 + 8 + 8 + 32) * MIB + 4_194_304, (
        "2147484 kB of memory are 4194304 bytes of page tables"
    )
    kilobytes = -(-plain // 1000)
    wanted = plain if not ratio else plain + int(kilobytes * (float(ratio) - 1)) * 1000
    assert overhead(ratio, **domain) == wanted


@report("B08")
@pytest.mark.parametrize("overcommit", [100, 130, 150])
def test_memory_on_huge_pages_is_the_guest_s_whole_memory(reported: str, overcommit: int) -> None:
    config = {"developerConfiguration": {"memoryOvercommit": overcommit}}
    given = merged(
        MINIMAL_VMI, {"spec": {"domain": {"memory": {"guest": "3Gi", "hugepages": {"pageSize": "2Mi"}}}}}
    )
    del given["spec"]["domain"]["resources"]
    root = ET.fromstring(kvnode.convert(kvnode.apply_defaults(given, "amd64", config), MINIMAL_CONTEXT))
    assert root.findtext("memory") == str(3 * 2**30)
    assert root.find("memoryBacking/hugepages") is not None


@report("B12")
@pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")
@pytest.mark.parametrize(("capacity", "size"), [("7G", 6_999_244_800), ("1Gi", 2**30), ("1Mi", MIB)])
def test_empty_disks_are_whole_mebibytes(
    reported: str, capacity: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "EMPTY_DISKS", tmp_path)
    empty_disk.prepare({"spec": {"volumes": [{"name": "e", "emptyDisk": {"capacity": capacity}}]}})
    shown = subprocess.run(
        ["qemu-img", "info", "--output=json", str(tmp_path / "e.qcow2")], check=True, capture_output=True
    )
    assert json.loads(shown.stdout)["virtual-size"] == size


@report("B12")
@pytest.mark.parametrize("capacity", ["1048575", "500k", "0"])
def test_an_empty_disk_below_a_mebibyte_is_an_error(
    reported: str, capacity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "EMPTY_DISKS", tmp_path)
    with pytest.raises(LauncherError, match=r"volume e: emptyDisk\.capacity"):
        empty_disk.prepare({"spec": {"volumes": [{"name": "e", "emptyDisk": {"capacity": capacity}}]}})
