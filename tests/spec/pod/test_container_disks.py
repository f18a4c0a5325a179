"""Container disks and kernels, as image volumes and the older way."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.pod import LauncherSettings, Surroundings
from tests.spec.pod.helpers import gates, instance, named, pod

CLASSIC = gates(off=("ImageVolume",))
KERNEL = {"kernelBoot": {"container": {"image": "kernel:1", "imagePullSecret": "k"}}}
VOLUMES = [
    {"name": "e", "emptyDisk": {"capacity": "1Gi"}},
    {"name": "d", "containerDisk": {"image": "disk:1", "imagePullPolicy": "Always", "imagePullSecret": "s"}},
]
PINNED = Surroundings(image_ids={"d": "disk@sha256:aa", "kernel-boot-volume": "kernel@sha256:bb"})


def spec(config: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    made: dict[str, Any] = pod(instance(volumes=VOLUMES, firmware=KERNEL), config, **arguments)["spec"]
    return made


def test_image_volumes() -> None:
    made = spec()
    assert named(made["volumes"], "d")["image"] == {"reference": "disk:1", "pullPolicy": "Always"}
    assert named(made["volumes"], "kernel-boot-volume")["image"] == {"reference": "kernel:1"}
    assert named(made["volumes"], "launcher-volume")["image"]["reference"] == "kubevirt/virt-launcher"
    mounts = made["containers"][0]["volumeMounts"]
    assert named(mounts, "d")["mountPath"] == "/var/run/kubevirt-image-volume/disk_1"
    assert named(mounts, "kernel-boot-volume")["mountPath"] == "/var/run/kubevirt-kernel-boot"
    assert "container-disks" not in {v["name"] for v in made["volumes"]}
    assert [c["name"] for c in made["initContainers"]] == [
        "guest-console-log",
        "volumed",
        "volumekernel-boot-volume",
    ]
    assert [c["name"] for c in made["containers"]] == ["compute"]


def test_an_init_container_of_an_image_ends_at_once() -> None:
    container = named(spec()["initContainers"], "volumed")
    assert container["image"] == "disk:1"
    assert container["imagePullPolicy"] == "Always"
    assert container["command"] == ["/container-disk-binary/usr/bin/container-disk"]
    assert container["args"] == ["--no-op"]
    assert container["securityContext"] == {
        "runAsUser": 107,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_without_a_policy_kubernetes_rule_for_the_tag_holds() -> None:
    assert "imagePullPolicy" not in named(spec()["initContainers"], "volumekernel-boot-volume")


def test_pinned_images_need_no_init_container() -> None:
    made = spec(surroundings=PINNED)
    assert named(made["volumes"], "d")["image"]["reference"] == "disk@sha256:aa"
    assert named(made["volumes"], "kernel-boot-volume")["image"]["reference"] == "kernel@sha256:bb"
    assert [c["name"] for c in made["initContainers"]] == ["guest-console-log"]
    assert "launcher-volume" not in {v["name"] for v in made["volumes"]}


def test_the_older_way() -> None:
    made = spec(CLASSIC)
    assert [c["name"] for c in made["containers"]] == ["compute", "volumed", "volumekernel-boot-volume"]
    assert [c["name"] for c in made["initContainers"]] == [
        "guest-console-log",
        "container-disk-binary",
        "volumed-init",
        "volumekernel-boot-volume-init",
    ]
    disk = named(made["containers"], "volumed")
    assert disk["args"] == ["--copy-path", "/var/run/kubevirt/container-disks/u-1/disk_1"]
    kernel = named(made["containers"], "volumekernel-boot-volume")
    assert kernel["args"] == ["--copy-path", "/var/run/kubevirt/container-disks/u-1/kernel-boot"]
    assert named(made["initContainers"], "volumed-init")["args"] == ["--no-op"]
    assert (
        named(disk["volumeMounts"], "container-disks")["mountPath"] == "/var/run/kubevirt/container-disks/u-1"
    )
    compute = made["containers"][0]
    assert named(compute["volumeMounts"], "container-disks")["mountPropagation"] == "HostToContainer"
    assert "--image-volume" not in compute["command"]


def test_the_older_way_pins_images_too() -> None:
    assert named(spec(CLASSIC, surroundings=PINNED)["containers"], "volumed")["image"] == "disk@sha256:aa"


def test_the_older_way_without_images_needs_nothing() -> None:
    made = pod(instance(), CLASSIC)["spec"]
    assert [c["name"] for c in made["initContainers"]] == ["guest-console-log"]


@pytest.mark.parametrize(
    ("cpu", "requests"),
    [
        ({}, {"cpu": "1m", "memory": "1M", "ephemeral-storage": "50M"}),
        (
            {"cores": 1, "dedicatedCpuPlacement": True},
            {"cpu": "10m", "memory": "40M", "ephemeral-storage": "50M"},
        ),
    ],
)
def test_resources(cpu: dict[str, Any], requests: dict[str, str]) -> None:
    vmi = instance(volumes=VOLUMES, cpu=cpu)
    resources = named(pod(vmi)["spec"]["initContainers"], "volumed")["resources"]
    assert resources == {"requests": requests, "limits": {"cpu": "10m", "memory": "40M"}}


@pytest.mark.parametrize(
    ("dedicated", "requests", "limits"),
    [(False, ("10m", "1M"), ("100m", "40M")), (True, ("10m", "40M"), ("10m", "40M"))],
)
def test_resources_of_the_copying_container(
    dedicated: bool, requests: tuple[str, str], limits: tuple[str, str]
) -> None:
    vmi = instance(volumes=VOLUMES, cpu={"cores": 1, "dedicatedCpuPlacement": dedicated})
    container = named(pod(vmi, CLASSIC)["spec"]["initContainers"], "container-disk-binary")
    assert container["command"][0] == "/usr/bin/cp"
    found = container["resources"]
    assert (found["requests"]["cpu"], found["requests"]["memory"]) == requests
    assert (found["limits"]["cpu"], found["limits"]["memory"]) == limits


def test_configured_resources() -> None:
    config = {
        "supportContainerResources": [
            {
                "type": "container-disk",
                "resources": {"requests": {"memory": "7M"}, "limits": {"cpu": "1000m", "memory": "0"}},
            }
        ]
    }
    resources = named(spec(config)["initContainers"], "volumed")["resources"]
    assert resources["requests"]["memory"] == "7M"
    assert resources["limits"] == {"cpu": "1", "memory": "40M"}, "a zero counts as not set"


def test_pull_secrets_each_once_in_order() -> None:
    twice = [*VOLUMES, {"name": "f", "containerDisk": {"image": "x", "imagePullSecret": "s"}}]
    settings = LauncherSettings(image_pull_secret="all")  # noqa: S106 - a name
    made = pod(instance(volumes=twice, firmware=KERNEL), settings=settings)
    assert made["spec"]["imagePullSecrets"] == [{"name": "s"}, {"name": "k"}, {"name": "all"}]
