"""Console log, virtiofsd and hook sidecars."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvnode.api.errors import FieldError
from kvnode.spec.pod import LauncherSettings
from tests.spec.pod.helpers import instance, named, pod

HOOKS = "hooks.kubevirt.io/hookSidecars"


# --- guest-console-log ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("devices", "cluster_off", "there"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"logSerialConsole": True}, True, True),
        ({"logSerialConsole": False}, False, False),
        ({"autoattachSerialConsole": False, "logSerialConsole": True}, False, False),
    ],
)
def test_the_console_is_logged(devices: dict[str, bool], cluster_off: bool, there: bool) -> None:
    config = {"virtualMachineOptions": {"disableSerialConsoleLog": {}}} if cluster_off else {}
    names = [c["name"] for c in pod(instance(devices=devices), config)["spec"].get("initContainers", [])]
    assert names == (["guest-console-log"] if there else [])


def test_the_console_logs_container() -> None:
    (container,) = pod(instance(labels={"logVerbosity": "4"}))["spec"]["initContainers"]
    assert container["restartPolicy"] == "Always", "it runs as long as the pod"
    assert container["args"] == ["--logfile", "/var/run/kubevirt-private/u-1/virt-serial0-log"]
    assert container["env"] == [{"name": "VIRT_LAUNCHER_LOG_VERBOSITY", "value": "4"}]
    assert container["resources"] == {
        "requests": {"cpu": "5m", "memory": "35M"},
        "limits": {"cpu": "15m", "memory": "60M"},
    }


def test_a_guaranteed_pod_requests_all_it_may_use() -> None:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    (container,) = pod(instance(resources=resources))["spec"]["initContainers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]


# --- virtiofs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "directory"),
    [
        ({"persistentVolumeClaim": {"claimName": "c"}}, "/fs"),
        ({"configMap": {"name": "c"}}, "/var/run/kubevirt-private/config-map/fs"),
        ({"secret": {"secretName": "c"}}, "/var/run/kubevirt-private/secret/fs"),
        ({"downwardAPI": {"fields": []}}, "/var/run/kubevirt-private/downwardapi/fs"),
    ],
)
def test_file_systems(source: dict[str, Any], directory: str) -> None:
    vmi = instance(
        volumes=[{"name": "fs", **source}], devices={"filesystems": [{"name": "fs", "virtiofs": {}}]}
    )
    spec = pod(vmi)["spec"]
    container = named(spec["containers"], "virtiofs-fs")
    assert f"--shared-dir={directory}" in container["args"]
    assert "--socket-path=/var/run/kubevirt/virtiofs-containers/fs.sock" in container["args"]
    assert named(container["volumeMounts"], "fs")["mountPath"] == directory
    assert named(spec["volumes"], "virtiofs-containers")["emptyDir"] == {}
    assert container["securityContext"]["runAsGroup"] == 107


def test_a_service_accounts_token_is_there_already() -> None:
    vmi = instance(
        volumes=[{"name": "sa", "serviceAccount": {"serviceAccountName": "x"}}],
        devices={"filesystems": [{"name": "sa", "virtiofs": {}}]},
    )
    container = named(pod(vmi)["spec"]["containers"], "virtiofs-sa")
    assert "--translate-uid=host:107:0:1" in container["args"]
    assert [m["name"] for m in container["volumeMounts"]] == ["virtiofs-containers"]


def test_a_container_path_is_left_to_the_pods_webhook() -> None:
    vmi = instance(
        volumes=[{"name": "p", "containerPath": {"path": "/x"}}],
        devices={"filesystems": [{"name": "p", "virtiofs": {}}]},
    )
    assert [c["name"] for c in pod(vmi)["spec"]["containers"]] == ["compute"]


# --- hook sidecars ----------------------------------------------------------------------------------


def hooked(sidecars: Any, **spec: Any) -> dict[str, Any]:
    text = sidecars if isinstance(sidecars, str) else json.dumps(sidecars)
    return instance(annotations={HOOKS: text}, **spec)


def test_a_sidecar() -> None:
    spec = pod(hooked([{"image": "hook:1", "imagePullPolicy": "Always", "args": ["--v"]}]))["spec"]
    sidecar = named(spec["containers"], "hook-sidecar-0")
    assert (sidecar["image"], sidecar["imagePullPolicy"], sidecar["args"]) == ("hook:1", "Always", ["--v"])
    assert {"name": "CONTAINER_NAME", "value": "hook-sidecar-0"} in sidecar["env"]
    assert sidecar["volumeMounts"] == [
        {"name": "hook-sidecar-sockets", "mountPath": "/var/run/kubevirt-hooks", "subPath": "hook-sidecar-0"}
    ]
    assert sidecar["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    compute = spec["containers"][0]
    assert named(compute["volumeMounts"], "hook-sidecar-sockets")["mountPath"] == "/var/run/kubevirt-hooks"
    assert compute["command"][compute["command"].index("--hook-sidecars") + 1] == "1"


def test_a_script_and_a_claim() -> None:
    vmi = hooked(
        [
            {"configMap": {"name": "script", "key": "k.sh", "hookPath": "/usr/bin/onDefineDomain"}},
            {"image": "i", "pvc": {"name": "data", "volumePath": "/v", "sharedComputePath": "/shared"}},
        ]
    )
    spec = pod(vmi, settings=LauncherSettings(sidecar_shim_image="shim:1"))["spec"]
    first = named(spec["containers"], "hook-sidecar-0")
    assert first["image"] == "shim:1"
    assert named(first["volumeMounts"], "script") == {
        "name": "script",
        "mountPath": "/usr/bin/onDefineDomain",
        "subPath": "k.sh",
    }
    assert named(spec["volumes"], "script")["configMap"] == {"name": "script", "defaultMode": 0o755}
    assert named(named(spec["containers"], "hook-sidecar-1")["volumeMounts"], "data")["mountPath"] == "/v"
    assert named(spec["containers"][0]["volumeMounts"], "data")["mountPath"] == "/shared"
    assert named(spec["volumes"], "data")["persistentVolumeClaim"] == {"claimName": "data"}


def test_a_sidecar_of_a_guaranteed_pod_is_limited() -> None:
    free = pod(hooked([{"image": "i"}]))["spec"]["containers"][1]
    assert free["resources"] == {"requests": {}, "limits": {}}
    vmi = hooked([{"image": "i"}], cpu={"cores": 1, "dedicatedCpuPlacement": True})
    bound = pod(vmi)["spec"]["containers"][1]
    assert bound["resources"]["requests"] == bound["resources"]["limits"] == {"cpu": "200m", "memory": "64M"}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{", f"metadata.annotations[{HOOKS}]"),
        ("{}", f"metadata.annotations[{HOOKS}]"),
        ("[" * 100_000, f"metadata.annotations[{HOOKS}]"),
        ("[1]", f"metadata.annotations[{HOOKS}][0]"),
        ('[{"image": 1}]', f"metadata.annotations[{HOOKS}][0].image"),
        ('[{"pvc": {"name": 1}}]', f"metadata.annotations[{HOOKS}][0].pvc.name"),
    ],
)
def test_a_bad_annotation_is_named(text: str, field: str) -> None:
    with pytest.raises(FieldError) as caught:
        pod(hooked(text))
    assert caught.value.field == field


def test_sidecars_of_root() -> None:
    made = pod(hooked([{"image": "i"}], status={"runtimeUser": 0}))["spec"]["containers"][1]
    assert made["securityContext"] == {"runAsUser": 0, "runAsNonRoot": False}
    assert [variable["name"] for variable in made["env"]] == ["CONTAINER_NAME"]
