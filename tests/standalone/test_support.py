"""What standalone mode does not have is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.model import TYPES
from kvnode.standalone.errors import StandaloneError
from kvnode.standalone.manifest import Instance
from kvnode.standalone.support import VOLUMES, refuse_unsupported

SOURCES = sorted(set(TYPES["Volume"]) - {"name", *VOLUMES})


def instance(spec: dict[str, Any], annotations: dict[str, str] | None = None, prefix: str = "") -> Instance:
    """An instance with this spec."""
    return Instance({"metadata": {"name": "v", "annotations": annotations}, "spec": spec}, {}, prefix)


def refusal(*arguments: Any, **more: Any) -> StandaloneError:
    """The error with which an instance is refused."""
    with pytest.raises(StandaloneError, match="is not supported in standalone mode") as error:
        refuse_unsupported(instance(*arguments, **more), "amd64")
    return error.value


@pytest.mark.parametrize("source", SOURCES)
def test_every_other_volume_of_the_api_is_refused(source: str) -> None:
    error = refusal({"volumes": [{"name": "a", "emptyDisk": {}}, {"name": "b", source: {}}]})
    assert error.field == f"spec.volumes[1].{source}"


def test_supported_volumes_pass() -> None:
    volumes = [{"name": source.lower(), source: {"userData": "x"}} for source in VOLUMES]
    refuse_unsupported(instance({"volumes": volumes, "architecture": "amd64"}), "amd64")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"architecture": "arm64"}, "spec.architecture"),
        ({"startStrategy": "Paused"}, "spec.startStrategy"),
        ({"readinessProbe": {"exec": {}}}, "spec.readinessProbe"),
        ({"accessCredentials": [{}]}, "spec.accessCredentials"),
        ({"networks": [{"name": "a", "multus": {}}]}, "spec.networks[0].multus"),
        ({"domain": {"devices": {"gpus": [{}]}}}, "spec.domain.devices.gpus"),
        ({"domain": {"devices": {"hostDevices": [{}]}}}, "spec.domain.devices.hostDevices"),
        ({"domain": {"devices": {"filesystems": [{}]}}}, "spec.domain.devices.filesystems"),
        ({"domain": {"devices": {"tpm": {"persistent": True}}}}, "spec.domain.devices.tpm.persistent"),
        ({"domain": {"cpu": {"dedicatedCpuPlacement": True}}}, "spec.domain.cpu.dedicatedCpuPlacement"),
        ({"domain": {"launchSecurity": {"sev": {}}}}, "spec.domain.launchSecurity"),
        (
            {"domain": {"devices": {"interfaces": [{"name": "a", "bridge": {}}]}}},
            "spec.domain.devices.interfaces[0].bridge",
        ),
        (
            {"volumes": [{"name": "c", "cloudInitNoCloud": {"secretRef": {"name": "s"}}}]},
            "spec.volumes[0].cloudInitNoCloud.secretRef",
        ),
    ],
)
def test_features_that_need_a_cluster(spec: dict[str, Any], field: str) -> None:
    assert refusal(spec).field == field
    where = field.replace("spec.", "spec.template.spec.", 1)
    assert refusal(spec, prefix="spec.template.").field == where


def test_switches_that_are_off_pass() -> None:
    spec = {
        "domain": {
            "devices": {
                "tpm": {"persistent": False},
                "gpus": [],
                "interfaces": [{"name": "a", "masquerade": {}}],
            },
            "cpu": {"dedicatedCpuPlacement": False},
        }
    }
    refuse_unsupported(instance(spec), "amd64")


def test_sidecars_are_refused() -> None:
    error = refusal({}, {"hooks.kubevirt.io/hookSidecars": "[]"})
    assert error.field == "metadata.annotations[hooks.kubevirt.io/hookSidecars]"
