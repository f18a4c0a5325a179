"""The cluster's configuration."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.api import gates
from kvnode.api.errors import FieldError
from kvnode.api.quantity import Quantity
from kvnode.spec.config import ClusterConfig

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SECTIONS = [
    "architectureConfiguration",
    "confidentialCompute",
    "developerConfiguration",
    "emulatedMachines",
    "liveUpdateConfiguration",
    "network",
    "permittedHostDevices",
    "smbios",
    "supportContainerResources",
    "virtualMachineOptions",
]


def developer(**settings: Any) -> ClusterConfig:
    return ClusterConfig.from_mapping({"developerConfiguration": settings})


@pytest.mark.parametrize("config", [None, {}, {"network": None, "machineType": "", "smbios": {}}])
def test_nothing_set_gives_the_defaults(config: dict[str, Any] | None) -> None:
    read = ClusterConfig.from_mapping(config)
    assert read.machine_type("amd64") == "q35"
    assert read.machine_type("arm64") == "virt"
    assert read.machine_type("s390x") == "s390-ccw-virtio"
    assert read.machine_type("riscv64") == "q35"
    assert read.emulated_machines("amd64") == ("q35*", "pc-q35*")
    assert read.cpu_request == Quantity("100m")
    assert read.default_network_interface == "bridge"
    assert read.memory_overcommit == 100
    assert read.cpu_allocation_ratio == 10
    assert read.max_hotplug_ratio == 4
    assert read.mem_balloon_stats_period == 10
    assert read.live_update
    assert read.permit_bridge_on_pod_network
    assert not read.use_emulation
    assert read.smbios["product"] == "None"


def test_settings_are_read() -> None:
    read = ClusterConfig.from_mapping(
        {
            "architectureConfiguration": {"arm64": {"machineType": "virt-7.2", "emulatedMachines": ["v*"]}},
            "cpuModel": "Haswell",
            "developerConfiguration": {"useEmulation": True, "cpuAllocationRatio": 4},
            "liveUpdateConfiguration": {"maxGuest": "8Gi", "maxCpuSockets": 3},
            "network": {"binding": {"plug": {"domainAttachmentType": "tap"}}},
            "smbios": {"product": "Ours"},
            "vmRolloutStrategy": "Stage",
            "unheardOf": 5,
        }
    )
    assert read.machine_type("arm64") == "virt-7.2"
    assert read.emulated_machines("arm64") == ("v*",)
    assert read.machine_type("amd64") == "q35"
    assert (read.cpu_model, read.use_emulation, read.cpu_allocation_ratio) == ("Haswell", True, 4)
    assert (read.max_guest, read.max_cpu_sockets) == (Quantity("8Gi"), 3)
    assert read.network_bindings["plug"]["domainAttachmentType"] == "tap"
    assert read.smbios == {"family": "KubeVirt", "manufacturer": "KubeVirt", "product": "Ours"}
    assert not read.live_update


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        ({"imagePullPolicy": "Always"}, "image_pull_policy", "Always"),
        ({"evictionStrategy": "LiveMigrate"}, "eviction_strategy", "LiveMigrate"),
        ({"memBalloonStatsPeriod": 0}, "mem_balloon_stats_period", 0),
        ({"developerConfiguration": {"memoryOvercommit": 150}}, "memory_overcommit", 150),
        ({"developerConfiguration": {"memoryOvercommit": 0}}, "memory_overcommit", 100),
        ({"developerConfiguration": {"nodeSelectors": {"a": "b"}}}, "node_selectors", {"a": "b"}),
        (
            {"developerConfiguration": {"minimumClusterTSCFrequency": 10**10}},
            "minimum_cluster_tsc_frequency",
            10**10,
        ),
        ({"liveUpdateConfiguration": {"maxHotplugRatio": 2}}, "max_hotplug_ratio", 2),
        ({"network": {"permitBridgeInterfaceOnPodNetwork": False}}, "permit_bridge_on_pod_network", False),
        ({"permittedHostDevices": {}}, "permitted_host_devices", {}),
        ({"supportedGuestAgentVersions": ["9.*"]}, "supported_guest_agent_versions", ("9.*",)),
        ({"virtualMachineOptions": {"disableSerialConsoleLog": {}}}, "disable_serial_console_log", True),
        ({"virtualMachineOptions": {"disableFreePageReporting": {}}}, "disable_free_page_reporting", True),
        ({"virtualMachineOptions": {}}, "disable_serial_console_log", False),
        ({"additionalGuestMemoryOverheadRatio": "1.5"}, "additional_guest_memory_overhead_ratio", "1.5"),
        ({"architectureConfiguration": {"defaultArchitecture": "arm64"}}, "default_architecture", "arm64"),
    ],
)
def test_each_setting_goes_where_it_belongs(config: dict[str, Any], name: str, value: Any) -> None:
    assert getattr(ClusterConfig.from_mapping(config), name) == value
    if value not in (False, 100):
        assert getattr(ClusterConfig(), name) != value


def test_machine_settings_for_all_architectures_win() -> None:
    read = ClusterConfig.from_mapping({"machineType": "pc", "emulatedMachines": ["pc*"]})
    assert read.machine_type("s390x") == "pc"
    assert read.emulated_machines("s390x") == ("pc*",)


def test_of_keeps_what_is_read_already() -> None:
    read = ClusterConfig()
    assert ClusterConfig.of(read) is read
    assert ClusterConfig.of({"cpuModel": "A"}).cpu_model == "A"


def test_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        ClusterConfig().cpu_model = "changed"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "settings", "on"),
    [
        ("GPU", {"disabledFeatureGates": ["GPU"]}, True),
        ("Snapshot", {}, True),
        ("Snapshot", {"disabledFeatureGates": ["Snapshot"]}, False),
        ("Snapshot", {"featureGates": ["Snapshot"], "disabledFeatureGates": ["Snapshot"]}, True),
        ("Root", {}, False),
        ("Root", {"featureGates": ["Root"]}, True),
        ("HotplugVolumes", {}, False),
        ("NoSuchGate", {"featureGates": ["NoSuchGate"]}, False),
    ],
)
def test_gates(name: str, settings: dict[str, Any], on: bool) -> None:
    assert developer(**settings).gate(name) is on


def test_every_gate_is_in_one_list_alone() -> None:
    lists = (gates.ALWAYS_ON, gates.DEFAULT_ON, gates.DEFAULT_OFF)
    assert sum(map(len, lists)) == len(frozenset().union(*lists)) == 84


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ([], "spec.configuration"),
        ({"network": "bridge"}, "spec.configuration.network"),
        (
            {"network": {"defaultNetworkInterface": "tun"}},
            "spec.configuration.network.defaultNetworkInterface",
        ),
        ({"network": {"binding": {"a": 1}}}, "spec.configuration.network.binding.a"),
        ({"cpuRequest": "lots"}, "spec.configuration.cpuRequest"),
        ({"imagePullPolicy": "Sometimes"}, "spec.configuration.imagePullPolicy"),
        ({"emulatedMachines": "q35"}, "spec.configuration.emulatedMachines"),
        (
            {"developerConfiguration": {"featureGates": ["A", 1]}},
            "spec.configuration.developerConfiguration.featureGates[1]",
        ),
        (
            {"developerConfiguration": {"memoryOvercommit": -1}},
            "spec.configuration.developerConfiguration.memoryOvercommit",
        ),
        (
            {"developerConfiguration": {"cpuAllocationRatio": 1.5}},
            "spec.configuration.developerConfiguration.cpuAllocationRatio",
        ),
        (
            {"liveUpdateConfiguration": {"maxCpuSockets": 2**32}},
            "spec.configuration.liveUpdateConfiguration.maxCpuSockets",
        ),
        ({"supportContainerResources": ["a"]}, "spec.configuration.supportContainerResources[0]"),
    ],
)
def test_a_bad_field_is_named(config: Any, field: str) -> None:
    with pytest.raises(FieldError) as refusal:
        ClusterConfig.from_mapping(config)
    assert refusal.value.field == field
    assert "must be" in str(refusal.value) or "is not a quantity" in str(refusal.value)


@given(st.dictionaries(st.sampled_from(SECTIONS), JSON))
def test_any_json_is_read_or_refused(config: dict[str, Any]) -> None:
    try:
        read = ClusterConfig.from_mapping(config)
    except FieldError as error:
        # Not pytest.raises: most of these are fine.
        named = error.field
    else:
        named = "spec.configuration"
        assert read.gate("GPU")
    assert named.startswith("spec.configuration")
