"""The launcher's command line, environment, ports and probes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.pod.helpers import compute, gates, instance, named, pod


def command(vmi: dict[str, Any], config: dict[str, Any] | None = None) -> list[str]:
    found: list[str] = compute(vmi, config)["command"]
    return found


def value(words: list[str], flag: str) -> str:
    return words[words.index(flag) + 1]


def test_the_whole_command() -> None:
    words = command(instance())
    timeout = words.pop(2)
    assert 240 <= int(timeout.removesuffix("s")) < 360
    assert words == [
        "/usr/bin/virt-launcher-monitor",
        "--qemu-timeout",
        *("--name", "t", "--uid", "u-1", "--namespace", "ns1"),
        *("--kubevirt-share-dir", "/var/run/kubevirt"),
        *("--ephemeral-disk-dir", "/var/run/kubevirt-ephemeral-disks"),
        *("--container-disk-dir", "/var/run/kubevirt/container-disks"),
        *("--grace-period-seconds", "45", "--hook-sidecars", "0"),
        *("--ovmf-path", "/usr/share/edk2/ovmf", "--disk-memory-limit", "2097152000", "--hypervisor", "kvm"),
        *(
            "--run-as-nonroot",
            "--image-volume",
            "--libvirt-hook-server-and-client",
            "--upgrade-ordinal-ifaces",
        ),
    ]


def test_timeouts_are_spread_out() -> None:
    assert len({value(command(instance()), "--qemu-timeout") for _ in range(50)}) > 5


@pytest.mark.parametrize(
    ("arch", "config", "path"),
    [
        ("arm64", {}, "/usr/share/AAVMF"),
        ("s390x", {}, ""),
        ("amd64", {"ovmfPath": "/mine"}, "/mine"),
        ("arm64", {"architectureConfiguration": {"arm64": {"ovmfPath": "/arm"}}}, "/arm"),
        ("amd64", {"architectureConfiguration": {"arm64": {"ovmfPath": "/arm"}}}, "/usr/share/edk2/ovmf"),
    ],
)
def test_firmware(arch: str, config: dict[str, Any], path: str) -> None:
    assert value(command(instance(architecture=arch), config), "--ovmf-path") == path


@pytest.mark.parametrize(
    ("asked", "launcher", "whole"), [(None, "45", 60), (0, "15", 30), (3600, "3615", 3630)]
)
def test_grace_periods(asked: int | None, launcher: str, whole: int) -> None:
    vmi = instance(**({} if asked is None else {"terminationGracePeriodSeconds": asked}))
    made = pod(vmi)["spec"]
    assert value(made["containers"][0]["command"], "--grace-period-seconds") == launcher
    assert made["terminationGracePeriodSeconds"] == whole


@pytest.mark.parametrize(
    ("config", "flag"),
    [
        (gates("VGPULiveMigration"), "--vgpu-dedicated-hook"),
        (gates("VMStatsCollector"), "--vm-stats-collector"),
        (gates("FirmwareAutoSelection"), "--firmware-auto-selection"),
        (gates(useEmulation=True), "--allow-emulation"),
        (gates("CrossArchitectureVirtualization"), "--allow-cross-arch-emulation"),
    ],
)
def test_flags_of_the_configuration(config: dict[str, Any], flag: str) -> None:
    assert flag in command(instance(), config)
    assert flag not in command(instance())


@pytest.mark.parametrize(
    ("annotations", "tail"),
    [
        ({"kubevirt.io/libvirt-log-filters": "3:remote"}, ["--libvirt-log-filters", "3:remote"]),
        ({"kubevirt.io/keep-launcher-alive-after-failure": ""}, ["--keep-after-failure"]),
        ({"kubevirt.io/keep-launcher-alive-after-failure-1": "true-ish"}, ["--keep-after-failure"]),
        ({"kubevirt.io/keep-launcher-alive-after-failure": "no"}, ["--upgrade-ordinal-ifaces"]),
        ({"kubevirt.io/func-test-virt-launcher-fail-fast": ""}, ["--simulate-crash"]),
    ],
)
def test_flags_of_annotations(annotations: dict[str, str], tail: list[str]) -> None:
    assert command(instance(annotations=annotations))[-len(tail) :] == tail


def test_the_memory_for_looking_into_disks() -> None:
    config = gates(diskVerification={"memoryLimit": "1Gi"})
    assert value(command(instance(), config), "--disk-memory-limit") == str(2**30)


def test_root_has_no_flag_and_no_directories_of_its_own() -> None:
    container = compute(instance(status={"runtimeUser": 0}))
    assert "--run-as-nonroot" not in container["command"]
    assert [variable["name"] for variable in container["env"]] == ["POD_NAME"]


# --- environment ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "cluster", "variables"),
    [
        ({}, 2, {}),
        ({}, 3, {"VIRT_LAUNCHER_LOG_VERBOSITY": "3"}),
        ({"logVerbosity": "2"}, 3, {"VIRT_LAUNCHER_LOG_VERBOSITY": "2"}),
        (
            {"logVerbosity": "6"},
            2,
            {"VIRT_LAUNCHER_LOG_VERBOSITY": "6", "LIBVIRT_DEBUG_LOGS": "1", "VIRTIOFSD_DEBUG_LOGS": "1"},
        ),
        ({"debugLogs": "True"}, 2, {"LIBVIRT_DEBUG_LOGS": "1"}),
        ({"virtiofsdDebugLogs": "true"}, 2, {"VIRTIOFSD_DEBUG_LOGS": "1"}),
    ],
)
def test_logging(labels: dict[str, str], cluster: int, variables: dict[str, str]) -> None:
    config = gates(logVerbosity={"virtLauncher": cluster})
    env = compute(instance(labels=labels), config)["env"]
    assert {v["name"]: v["value"] for v in env if "LOG" in v["name"]} == variables


def test_user_and_name() -> None:
    env = compute(instance())["env"]
    assert named(env, "XDG_CACHE_HOME")["value"] == "/var/run/kubevirt-private"
    assert named(env, "XDG_RUNTIME_DIR")["value"] == "/var/run"
    assert env[-1] == {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def test_ports() -> None:
    interfaces = [
        {"name": "a", "ports": [{"port": 80, "name": "web"}, {"port": 53, "protocol": "UDP"}]},
        {"name": "b", "ports": [{"port": 22}]},
    ]
    assert compute(instance(devices={"interfaces": interfaces}))["ports"] == [
        {"name": "web", "containerPort": 80, "protocol": "TCP"},
        {"containerPort": 53, "protocol": "UDP"},
        {"containerPort": 22, "protocol": "TCP"},
    ]


# --- probes -----------------------------------------------------------------------------------------

DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


@pytest.mark.parametrize("kind", ["readinessProbe", "livenessProbe"])
@pytest.mark.parametrize("handler", [{"httpGet": {"port": 80, "path": "/"}}, {"tcpSocket": {"port": "ssh"}}])
def test_a_probe_by_network(kind: str, handler: dict[str, Any]) -> None:
    made = compute(instance(**{kind: {**handler, "initialDelaySeconds": 20, "periodSeconds": 5}}))[kind]
    assert made == {**DEFAULTS, **handler, "initialDelaySeconds": 30, "periodSeconds": 5}


def test_a_command_runs_in_the_guest() -> None:
    probe = {"exec": {"command": ["cat", "/tmp/ok"]}, "timeoutSeconds": 7}
    assert compute(instance(readinessProbe=probe))["readinessProbe"] == {
        **DEFAULTS,
        "exec": {
            "command": [
                *("virt-probe", "--domainName", "ns1_t", "--timeoutSeconds", "7"),
                *("--command", "cat", "--", "/tmp/ok"),
            ]
        },
        "timeoutSeconds": 8,
        "initialDelaySeconds": 10,
    }


def test_the_agent_is_pinged() -> None:
    made = compute(instance(livenessProbe={"guestAgentPing": {}}))["livenessProbe"]
    assert made["exec"]["command"][-1] == "--guestAgentPing"
    assert made["timeoutSeconds"] == 2


@pytest.mark.parametrize("words", [[], ["virt-probe", "--mine"]])
def test_some_commands_are_left_alone(words: list[str]) -> None:
    made = compute(instance(livenessProbe={"exec": {"command": words}}))["livenessProbe"]
    assert made["exec"] == {"command": words}
    assert made["timeoutSeconds"] == 1
