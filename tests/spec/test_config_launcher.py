"""Settings of the cluster that shape launcher pods."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.api.errors import FieldError
from kvnode.spec.config import ClusterConfig


def test_the_defaults() -> None:
    read = ClusterConfig()
    assert [read.ovmf_path(arch) for arch in ("amd64", "arm64", "s390x", "")] == [
        "/usr/share/edk2/ovmf",
        "/usr/share/AAVMF",
        "",
        "/usr/share/edk2/ovmf",
    ]
    assert read.disk_verification_memory_limit == 2097152000
    assert read.launcher_log_verbosity == 2
    assert read.seccomp_profile is None


def test_firmware_for_one_architecture_or_for_all() -> None:
    one = {"architectureConfiguration": {"s390x": {"ovmfPath": "/z"}}}
    assert ClusterConfig.from_mapping(one).ovmf_path("s390x") == "/z"
    assert ClusterConfig.from_mapping({**one, "ovmfPath": "/all"}).ovmf_path("s390x") == "/all"


def test_a_verbosity_of_zero_counts_as_not_set() -> None:
    config = {"developerConfiguration": {"logVerbosity": {"virtLauncher": 0}}}
    assert ClusterConfig.from_mapping(config).launcher_log_verbosity == 2


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"ovmfPath": 1}, "ovmfPath"),
        (
            {"architectureConfiguration": {"arm64": {"ovmfPath": []}}},
            "architectureConfiguration.arm64.ovmfPath",
        ),
        (
            {"developerConfiguration": {"logVerbosity": {"virtLauncher": "3"}}},
            "developerConfiguration.logVerbosity.virtLauncher",
        ),
        (
            {"developerConfiguration": {"diskVerification": {"memoryLimit": "much"}}},
            "developerConfiguration.diskVerification.memoryLimit",
        ),
        (
            {
                "seccompConfiguration": {
                    "virtualMachineInstanceProfile": {"customProfile": {"localhostProfile": 1}}
                }
            },
            "seccompConfiguration.virtualMachineInstanceProfile.customProfile.localhostProfile",
        ),
    ],
)
def test_a_wrong_setting_is_named(config: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError) as caught:
        ClusterConfig.from_mapping(config)
    assert caught.value.field == f"spec.configuration.{field}"
