"""Rules on memory, CPUs, firmware and features."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.validation.build import domain, found

PINNED = {"dedicatedCpuPlacement": True, "cores": 2}
NUMA = {**PINNED, "numa": {"guestMappingPassthrough": {}}}
HUGE = {"guest": "2Gi", "hugepages": {"pageSize": "1Gi"}}
REQUEST, LIMIT = "domain.resources.requests.", "domain.resources.limits."
DEDICATED = "domain.cpu.dedicatedCpuPlacement"
MAPPING = "domain.cpu.numa.guestMappingPassthrough"


def resources(**sides: Any) -> dict[str, Any]:
    return domain(resources=sides)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="the base is valid"),
        pytest.param(resources(requests={"memory": "-1Gi"}), [REQUEST + "memory"], id="negative request"),
        pytest.param(resources(requests={"memory": "999k"}), [REQUEST + "memory"], id="request under 1M"),
        pytest.param(resources(requests={"memory": "1M"}), [], id="request of 1M"),
        pytest.param(resources(limits={"memory": "-1"}), [LIMIT + "memory"], id="negative limit"),
        pytest.param(
            resources(requests={"memory": "2Gi"}, limits={"memory": "1Gi"}),
            [REQUEST + "memory"],
            id="request over limit",
        ),
        pytest.param(domain(memory=None), ["domain.memory.guest"], id="no memory at all"),
        pytest.param(
            domain(memory={"reservedOverhead": {}}), ["domain.memory.reservedOverhead"], id="overhead gate"
        ),
        pytest.param(resources(requests={"cpu": "-1"}), [REQUEST + "cpu"], id="negative cpu request"),
        pytest.param(resources(limits={"cpu": "-1m"}), [LIMIT + "cpu"], id="negative cpu limit"),
        pytest.param(
            resources(requests={"cpu": "2"}, limits={"cpu": "1500m"}), [REQUEST + "cpu"], id="cpu over limit"
        ),
    ],
)
def test_resources(spec: dict[str, Any], expected: list[str]) -> None:
    assert found(spec) == expected


@pytest.mark.parametrize(
    ("guest", "page", "expected"),
    [
        pytest.param("2Gi", "2Mi", [], id="B20 accept"),
        pytest.param("3Mi", "2Mi", [REQUEST + "memory"], id="B20 not a multiple"),
        pytest.param("1Mi", "2Mi", [REQUEST + "memory"], id="B20 smaller than a page"),
        pytest.param("1Gi", "large", ["domain.memory.hugepages.pageSize"], id="no quantity"),
        pytest.param("1Gi", "0", ["domain.memory.hugepages.pageSize"], id="zero"),
    ],
)
def test_hugepages(guest: str, page: str, expected: list[str]) -> None:
    assert found(domain(memory={"guest": guest, "hugepages": {"pageSize": page}})) == expected


def test_hugepages_of_a_limit_alone() -> None:
    """B20: neither guest nor request: the limit is what counts, and nothing at all is no crash."""
    hugepages = {"hugepages": {"pageSize": "2Mi"}, "guest": None}
    assert found(domain(memory=hugepages, resources={"limits": {"memory": "2Gi"}})) == []
    assert found(domain(memory=hugepages)) == []


def test_a_guest_over_its_limit_is_for_live_update_only() -> None:
    spec = domain(memory={"guest": "2Gi"}, resources={"limits": {"memory": "1Gi"}})
    assert found(spec) == []
    assert found(spec, vmRolloutStrategy="Stage") == ["domain.memory.guest"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(domain(cpu=PINNED), [], id="pinned"),
        pytest.param(domain(cpu={"dedicatedCpuPlacement": True}), [DEDICATED], id="no CPUs"),
        pytest.param(
            domain(cpu=PINNED, memory=None),
            ["domain.memory.guest", LIMIT + "memory"],
            id="no memory",
        ),
        pytest.param(
            domain(cpu=PINNED, resources={"limits": {"cpu": "1500m"}}),
            [LIMIT + "cpu"],
            id="part of a CPU (which rounds up to the two)",
        ),
        pytest.param(
            domain(cpu=PINNED, resources={"limits": {"cpu": "3"}, "requests": {"cpu": "3"}}),
            [DEDICATED],
            id="resources unlike topology",
        ),
        pytest.param(
            domain(cpu=PINNED, resources={"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}),
            [DEDICATED],
            id="request unlike limit",
        ),
        pytest.param(
            domain(cpu=PINNED, resources={"limits": {"memory": "2Gi"}, "requests": {"memory": "1Gi"}}),
            [REQUEST + "memory"],
            id="memory request unlike limit",
        ),
        pytest.param(domain(cpu={**PINNED, "threads": 3}), [DEDICATED], id="three threads"),
        pytest.param(domain(cpu={"cores": 2, "threads": 3}), [], id="three threads, not pinned"),
        pytest.param(domain(cpu=NUMA, memory=HUGE), [], id="NUMA"),
        pytest.param(domain(cpu=NUMA), [MAPPING], id="NUMA without huge pages"),
        pytest.param(
            domain(cpu={**NUMA, "dedicatedCpuPlacement": False}, memory=HUGE), [MAPPING], id="NUMA not pinned"
        ),
        pytest.param(domain(cpu={"realtime": {}}), [DEDICATED, MAPPING], id="real time alone"),
        pytest.param(domain(cpu={**NUMA, "realtime": {}}, memory=HUGE), [], id="real time"),
        pytest.param(
            domain(cpu={"isolateEmulatorThread": True}),
            ["domain.cpu.isolateEmulatorThread"],
            id="emulator thread",
        ),
        pytest.param(
            domain(cpu={"features": [{"name": "a", "policy": "force"}, {"name": "b", "policy": "maybe"}]}),
            ["domain.cpu.features[1].policy"],
            id="feature policy",
        ),
        pytest.param(domain(cpu={"sockets": 3, "maxSockets": 2}), ["domain.cpu.sockets"], id="sockets"),
        pytest.param(domain(cpu={"sockets": 5, "maxSockets": 5}), [], id="B18 maximum raised by defaulting"),
    ],
)
def test_cpu(spec: dict[str, Any], expected: list[str]) -> None:
    assert found(spec) == expected


def test_cpu_on_arm64() -> None:
    assert found(domain(cpu={"model": "host-passthrough"}), "arm64") == []
    assert found(domain(cpu={"model": "cortex-a57"}), "arm64") == ["domain.cpu.model"]
    assert found(domain(cpu={**PINNED, "threads": 2}), "arm64") == ["architecture"]
    assert found(domain(firmware={"bootloader": {"bios": {}}}), "arm64") == [
        "domain.firmware.bootloader.bios"
    ]


def test_threads_without_pinning_are_no_matter_on_arm64() -> None:
    assert found(domain(cpu={"threads": 2}), "arm64") == []


@pytest.mark.parametrize(
    ("machine", "architecture", "valid"),
    [
        ("q35", "amd64", True),
        ("pc-q35-8.2", "amd64", True),
        ("pc-i440fx-7.2", "amd64", False),
        ("virt-9.0", "arm64", True),
        ("q35", "arm64", False),
        ("s390-ccw-virtio-8.2", "s390x", True),
    ],
)
def test_machine_types(machine: str, architecture: str, valid: bool) -> None:
    assert found(domain(machine={"type": machine}), architecture) == (
        [] if valid else ["domain.machine.type"]
    )


def test_machine_types_of_the_cluster() -> None:
    assert found(domain(machine={"type": "pc"}), emulatedMachines=["pc"]) == []


@pytest.mark.parametrize(
    ("firmware", "expected"),
    [
        pytest.param({"bootloader": {"bios": {}}}, [], id="BIOS"),
        pytest.param({"bootloader": {"efi": {"secureBoot": False}}}, [], id="EFI"),
        pytest.param({"bootloader": {"efi": {}}}, ["domain"], id="secure boot without SMM"),
        pytest.param(
            {"bootloader": {"efi": {"secureBoot": False}, "bios": {}}},
            ["domain.firmware.bootloader"],
            id="two loaders",
        ),
        pytest.param({"acpi": {}}, ["acpi"], id="no ACPI table"),
        pytest.param({"acpi": {"slicNameRef": "none"}}, ["acpi.slicNameRef"], id="table without volume"),
        pytest.param({"acpi": {"msdmNameRef": "root"}}, ["acpi.msdmNameRef"], id="table not a secret"),
        pytest.param(
            {"kernelBoot": {"kernelArgs": "console=ttyS0", "container": {"image": "i", "kernelPath": "/k"}}},
            [],
            id="B34 kernel alone",
        ),
        pytest.param(
            {"kernelBoot": {"kernelArgs": "x"}},
            ["domain.firmware.kernelBoot.kernelArgs"],
            id="B34 args alone",
        ),
        pytest.param(
            {"kernelBoot": {"container": {"image": ""}}},
            ["domain.firmware.kernelBoot.container.image", "domain.firmware.kernelBoot.container"],
            id="nothing in the container",
        ),
        pytest.param(
            {"kernelBoot": {"container": {"image": "i", "kernelPath": "k", "initrdPath": "/a/../b"}}},
            [
                "domain.firmware.kernelBoot.container.kernelPath",
                "domain.firmware.kernelBoot.container.initrdPath",
            ],
            id="relative paths",
        ),
    ],
)
def test_firmware(firmware: dict[str, Any], expected: list[str]) -> None:
    assert found(domain(firmware=firmware)) == expected


def test_secure_boot_with_smm() -> None:
    efi = {"bootloader": {"efi": {"secureBoot": True}}}
    assert found(domain(firmware=efi, features={"smm": {}})) == []
    assert found(domain(firmware=efi, features={"smm": {"enabled": False}})) == ["domain"]


ON, OFF = {"enabled": True}, {"enabled": False}
HYPERV = "domain.features.hyperv."


@pytest.mark.parametrize(
    ("hyperv", "expected"),
    [
        pytest.param({"relaxed": {}}, [], id="B36 one member alone"),
        pytest.param({"synic": {}}, [], id="B36 not set is not on"),
        pytest.param({"synic": ON, "vpindex": ON}, [], id="what is needed is on"),
        pytest.param({"synic": ON, "vpindex": OFF}, [HYPERV * 2 + "synic"], id="synic needs vpindex"),
        pytest.param({"ipi": ON}, [HYPERV * 2 + "ipi"], id="ipi needs vpindex"),
        pytest.param({"tlbflush": ON}, [HYPERV * 2 + "tlbflush"], id="tlbflush needs vpindex"),
        pytest.param(
            {"synictimer": ON, "synic": ON},
            [HYPERV * 2 + "synic"],
            id="each is asked about what is right below it",
        ),
        pytest.param(
            {"evmcs": ON}, [HYPERV * 2 + "evmcs", "domain.cpu.features"], id="evmcs needs vapic and vmx"
        ),
        pytest.param({"evmcs": OFF}, [], id="evmcs off"),
    ],
)
def test_hyperv(hyperv: dict[str, Any], expected: list[str]) -> None:
    assert found(domain(features={"hyperv": hyperv})) == expected


def test_hyperv_vmx_policy() -> None:
    spec = domain(
        features={"hyperv": {"evmcs": ON, "vapic": ON}},
        cpu={"features": [{"name": "vmx", "policy": "optional"}, {"name": "vmx", "policy": "require"}]},
    )
    assert found(spec) == ["domain.cpu.features[0].policy"]


def test_hyperv_passthrough() -> None:
    """B36: passthrough without `enabled` is valid; beside single features it is not."""
    assert found(domain(features={"hypervPassthrough": {}})) == []
    assert found(domain(features={"hypervPassthrough": {}, "hyperv": {}})) == ["domain.features.hyperv"]
