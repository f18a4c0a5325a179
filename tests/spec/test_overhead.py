"""Memory overhead, term by term."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kvnode.api.errors import FieldError
from kvnode.spec.overhead import MIB, memory_overhead, memory_overhead_terms

ALWAYS = 220 * MIB
"""The processes of every VM."""


def instance(domain: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"spec": {"domain": {"devices": {"autoattachGraphicsDevice": False}, **(domain or {})}, **spec}}


def devices(**members: Any) -> dict[str, Any]:
    return instance({"devices": {"autoattachGraphicsDevice": False, **members}})


def extra(vmi: dict[str, Any], **options: Any) -> int:
    """Bytes on top of the processes, one vCPU and the I/O thread."""
    return memory_overhead(vmi, "amd64", **options) - ALWAYS - 16 * MIB


def test_smallest() -> None:
    terms = memory_overhead_terms(instance(), "amd64")
    assert {term.name: term.bytes // MIB for term in terms} == {
        "launcher-monitor": 25,
        "launcher": 100,
        "virtlogd": 25,
        "virtqemud": 40,
        "qemu": 30,
        "vcpus": 8,
        "io-threads": 8,
    }


@pytest.mark.parametrize(
    ("vmi", "mib", "name", "field"),
    [
        (instance({"devices": {}}), 32, "video", "spec.domain.devices.autoattachGraphicsDevice"),
        (devices(gpus=[{}, {}]), 1024, "vfio", "spec.domain.devices.gpus"),
        (devices(gpus=[{}], hostDevices=[{}]), 1024, "vfio", "spec.domain.devices.hostDevices"),
        (
            devices(interfaces=[{"name": "a"}, {"sriov": {}}]),
            1024,
            "vfio",
            "spec.domain.devices.interfaces[1].sriov",
        ),
        (
            instance(volumes=[{"name": "m", "downwardMetrics": {}}]),
            1,
            "downward-metrics",
            "spec.volumes[0].downwardMetrics",
        ),
        (instance(livenessProbe={"exec": {}}), 110, "probes", "spec.livenessProbe.exec"),
        (
            instance(livenessProbe={"exec": {}}, readinessProbe={"exec": {}}),
            120,
            "probes",
            "spec.livenessProbe.exec",
        ),
        (
            instance({"launchSecurity": {"snp": {}}}),
            256,
            "memory-encryption",
            "spec.domain.launchSecurity.snp",
        ),
        (devices(tpm={}), 53, "tpm", "spec.domain.devices.tpm"),
        (
            instance({"memory": {"reservedOverhead": {"addedOverhead": "7Mi"}}}),
            7,
            "reserved",
            "spec.domain.memory.reservedOverhead.addedOverhead",
        ),
        (
            instance({"cpu": {"dedicatedCpuPlacement": True}}),
            100,
            "guaranteed",
            "spec.domain.cpu.dedicatedCpuPlacement",
        ),
        (instance({"cpu": {"cores": 2, "threads": 2}}), 24, "vcpus", "spec.domain.cpu"),
        (
            instance({"resources": {"limits": {"cpu": "1500m"}}}),
            8,
            "vcpus",
            "spec.domain.resources.limits.cpu",
        ),
    ],
)
def test_terms(vmi: dict[str, Any], mib: int, name: str, field: str) -> None:
    assert extra(vmi) == mib * MIB
    assert field in [term.field for term in memory_overhead_terms(vmi, "amd64") if term.name == name]


@pytest.mark.parametrize(
    "vmi",
    [
        instance(livenessProbe={"guestAgentPing": {}}),
        devices(tpm={"enabled": False}),
        instance({"launchSecurity": {"tdx": {}}}),
        instance({"cpu": {"realtime": {}}}),
        instance({"firmware": {"bootloader": {"efi": {}}}}),
        instance({"resources": {"limits": {"cpu": "1", "memory": "0"}}}),
    ],
)
def test_what_costs_nothing(vmi: dict[str, Any]) -> None:
    assert extra(vmi) == 0


def test_arm64_adds_flash() -> None:
    assert memory_overhead(instance(), "arm64") - memory_overhead(instance(), "amd64") == 128 * MIB
    assert memory_overhead(instance(architecture="amd64"), "arm64") == memory_overhead(instance(), "amd64")


@pytest.mark.parametrize(
    ("requests", "limits", "guaranteed"),
    [
        ({"cpu": "1", "memory": "1M"}, {"cpu": "1000m", "memory": "1000k"}, True),
        ({"cpu": "1"}, {"cpu": "1", "memory": "1M"}, True),
        ({"cpu": "1", "memory": "1M"}, {"cpu": "1", "memory": "2M"}, False),
        ({"cpu": "1", "memory": "1M"}, {"cpu": "2", "memory": "1M"}, False),
        ({"memory": "1M"}, {"memory": "1M"}, False),
        ({"cpu": "1"}, {"cpu": "1"}, False),
    ],
)
def test_reserve_of_a_guaranteed_pod(requests: Any, limits: Any, guaranteed: bool) -> None:
    terms = memory_overhead_terms(instance({"resources": {"requests": requests, "limits": limits}}), "amd64")
    assert ("guaranteed" in [term.name for term in terms]) is guaranteed


def test_so_many_vcpus_that_32_bits_overflow() -> None:
    assert extra(instance({"cpu": {"cores": 2**31, "sockets": 2}})) == 0
    assert extra(instance({"cpu": {"cores": 2**31, "sockets": 3}})) == (2**31 - 1) * 8 * MIB


def test_b01_page_tables_are_for_the_memory_requested() -> None:
    cpu = {"cores": 1, "sockets": 1, "threads": 1}
    guest = {"spec": {"domain": {"cpu": cpu, "memory": {"guest": "64Gi"}}}}
    requested = {"spec": {"domain": {"cpu": cpu, "resources": {"requests": {"memory": "64Gi"}}}}}
    assert memory_overhead(guest, "amd64") == 281018368
    assert memory_overhead(requested, "amd64") == 281018368 + 134217728
    assert memory_overhead(guest, "amd64", guest_page_tables=True) == 281018368 + 134217728


def test_b03_dedicated_cpus() -> None:
    domain = {"cpu": {"cores": 4, "dedicatedCpuPlacement": True}, "memory": {"guest": "4Gi"}}
    assert memory_overhead({"spec": {"domain": domain}}, "amd64") == 411041792
    domain["resources"] = {"requests": {"memory": "4Gi"}}
    assert memory_overhead({"spec": {"domain": domain}}, "amd64") == 411041792 + 8388609


def test_b04_vfio_is_counted_once() -> None:
    gpus = [{"name": f"g{number}", "deviceName": "vendor.example/gpu"} for number in range(4)]
    assert extra(devices(gpus=gpus)) == 1024 * MIB


@pytest.mark.parametrize("ratio", ["", "1.0", "1", 1, None, "many", "nan", "inf", " 1.5", "1_0"])
def test_b06_ratios_that_change_nothing(ratio: Any) -> None:
    assert extra(instance(), ratio=ratio) == 0


@pytest.mark.parametrize(
    ("ratio", "added"),
    [
        ("1.5", 125_829_000),
        ("3", 503_318_000),
        ("1e1", 2_264_931_000),
        (0.5, -125_829_000),
        (".9", -25_165_000),
    ],
)
def test_b06_ratio_multiplies_thousands(ratio: Any, added: int) -> None:
    vmi = instance({"resources": {"requests": {"memory": "2Gi"}}, "memory": {"guest": "2Gi"}})
    page_tables = memory_overhead_terms(vmi, "amd64")[0]
    assert (page_tables.name, page_tables.bytes) == ("page-tables", 4_194_304)
    assert memory_overhead(vmi, "amd64") == 251_658_240
    assert memory_overhead(vmi, "amd64", ratio) == 251_658_240 + added


def test_b06_the_network_comes_after_the_ratio() -> None:
    plugin = {"computeResourceOverhead": {"requests": {"memory": "3Mi"}}}
    config = {
        "additionalGuestMemoryOverheadRatio": "2",
        "network": {"binding": {"plug": plugin, "free": {}}},
    }
    interfaces = [
        {"name": "a", "passtBinding": {}},
        {"name": "b", "passtBinding": {}},
        {"name": "c", "binding": {"name": "plug"}},
        {"name": "d", "binding": {"name": "plug"}},
        {"name": "e", "binding": {"name": "free"}},
        {"name": "f", "binding": {"name": "unknown"}},
    ]
    terms = memory_overhead_terms(devices(interfaces=interfaces), "amd64", config=config)
    assert [(term.name, term.bytes // MIB, term.field) for term in terms[-2:]] == [
        ("passt", 250, "spec.domain.devices.interfaces[0].passtBinding"),
        ("binding-plugin", 3, "spec.domain.devices.interfaces[2].binding.name"),
    ]
    assert terms[-3].name == "ratio"
    assert sum(term.bytes for term in terms) == memory_overhead(
        devices(interfaces=interfaces), "amd64", config=config
    )
    assert "passt" not in [
        term.name for term in memory_overhead_terms(devices(interfaces=interfaces), "amd64")
    ]


@pytest.mark.parametrize(
    ("arch", "domain", "spec", "ratio", "total"),
    [
        ("amd64", {"resources": {"requests": {"memory": "1Gi"}}, "cpu": {"cores": 1}}, {}, None, 283115520),
        (
            "arm64",
            {
                "memory": {"guest": "2Gi"},
                "cpu": {"cores": 2},
                "devices": {"tpm": {}, "autoattachGraphicsDevice": False},
            },
            {},
            "1.2",
            534772800,
        ),
        (
            "amd64",
            {
                "resources": {"requests": {"memory": "4Gi"}},
                "cpu": {"cores": 4, "dedicatedCpuPlacement": True},
                "devices": {"gpus": [{}]},
                "launchSecurity": {"sev": {}},
            },
            {
                "volumes": [{"name": "m", "downwardMetrics": {}}],
                "livenessProbe": {"exec": {}},
                "readinessProbe": {"exec": {}},
            },
            None,
            1888485377,
        ),
    ],
    ids=["plain", "arm64-ratio", "everything"],
)
def test_whole(arch: str, domain: dict[str, Any], spec: dict[str, Any], ratio: Any, total: int) -> None:
    assert memory_overhead({"spec": {"domain": domain, **spec}}, arch, ratio) == total


def test_the_instance_is_left_alone_and_every_term_is_explained() -> None:
    vmi = devices(tpm={}, gpus=[{}])
    before = copy.deepcopy(vmi)
    terms = memory_overhead_terms(vmi, "arm64", "1.5")
    assert vmi == before
    assert all(term.reason and term.bytes for term in terms)
    assert len({term.name for term in terms}) == len(terms)


@pytest.mark.parametrize(
    ("vmi", "field"),
    [
        ({"spec": {"domain": {"memory": {"guest": "much"}}}}, "spec.domain.memory.guest"),
        ({"spec": {"domain": {"devices": []}}}, "spec.domain.devices"),
        ({"spec": {"volumes": {}}}, "spec.volumes"),
        ({"spec": {"domain": {"cpu": {"cores": -1}}}}, "spec.domain.cpu.cores"),
        ("vmi", ""),
    ],
)
def test_a_bad_field_is_named(vmi: Any, field: str) -> None:
    with pytest.raises(FieldError) as refusal:
        memory_overhead(vmi, "amd64")
    assert refusal.value.field == field


def test_a_bad_plugin_is_named() -> None:
    config = {"network": {"binding": {"plug": {"computeResourceOverhead": {"requests": {"memory": "x"}}}}}}
    vmi = devices(interfaces=[{"name": "a", "binding": {"name": "plug"}}])
    with pytest.raises(FieldError) as refusal:
        memory_overhead(vmi, "amd64", config=config)
    assert refusal.value.field == (
        "spec.configuration.network.binding.plug.computeResourceOverhead.requests.memory"
    )
