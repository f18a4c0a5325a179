"""The pod as a whole: what is always there, what is copied, and what bad input gives."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvnode
from kvnode.api.errors import FieldError
from kvnode.spec.config import ClusterConfig
from kvnode.spec.pod import LauncherSettings, Surroundings
from tests.spec.pod.helpers import compute, gates, instance, named, pod


def test_a_small_pod() -> None:
    made = pod(instance())
    assert set(made) == {"metadata", "spec"}
    spec = made["spec"]
    assert spec["restartPolicy"] == "Never"
    assert spec["hostname"] == "t"
    assert spec["enableServiceLinks"] is False
    assert spec["automountServiceAccountToken"] is False
    assert spec["readinessGates"] == [{"conditionType": "kubevirt.io/virtual-machine-unpaused"}]
    assert [c["name"] for c in spec["containers"]] == ["compute"]
    assert [c["name"] for c in spec["initContainers"]] == ["guest-console-log"]
    assert spec["volumes"][0] == {"name": "private", "emptyDir": {}}
    container = spec["containers"][0]
    assert container["image"] == "kubevirt/virt-launcher"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert "ports" not in container
    assert "serviceAccountName" not in spec


def test_what_is_copied() -> None:
    copied: dict[str, Any] = {
        "dnsConfig": {"nameservers": ["10.0.0.1"]},
        "dnsPolicy": "None",
        "priorityClassName": "high",
        "schedulerName": "mine",
        "subdomain": "sub",
        "tolerations": [{"key": "vm", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
    }
    spec = pod(instance(**copied))["spec"]
    assert {name: spec[name] for name in copied} == copied
    assert pod(instance(), {"defaultRuntimeClass": "kata"})["spec"]["runtimeClassName"] == "kata"


@pytest.mark.parametrize(
    ("spec", "annotations", "account", "mounted"),
    [
        ({}, {}, None, False),
        ({"serviceAccountName": "own"}, {}, "own", False),
        ({"volumes": [{"name": "s", "serviceAccount": {"serviceAccountName": "vol"}}]}, {}, "vol", True),
        (
            {
                "serviceAccountName": "own",
                "volumes": [{"name": "s", "serviceAccount": {"serviceAccountName": "v"}}],
            },
            {},
            "own",
            True,
        ),
        ({}, {"sidecar.istio.io/inject": "True"}, None, True),
        ({}, {"sidecar.istio.io/inject": "false"}, None, False),
    ],
)
def test_service_account(
    spec: dict[str, Any], annotations: dict[str, str], account: str | None, mounted: bool
) -> None:
    made = pod(instance(annotations=annotations, **spec))["spec"]
    assert (made.get("serviceAccountName"), made["automountServiceAccountToken"]) == (account, mounted)


def test_installation_settings() -> None:
    settings = LauncherSettings(launcher_image="r/l:1", share_dir="/s", image_pull_secret="pull")  # noqa: S106 - a name
    made = pod(instance(), {"imagePullPolicy": "Always"}, settings=settings)["spec"]
    for container in made["containers"] + made["initContainers"]:
        assert (container["image"], container["imagePullPolicy"]) == ("r/l:1", "Always")
    assert made["imagePullSecrets"] == [{"name": "pull"}]
    assert named(made["containers"][0]["volumeMounts"], "sockets")["mountPath"] == "/s/sockets"


def test_a_temporary_pod_runs_nothing_and_binds_the_claims() -> None:
    vmi = instance(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}])
    made = pod(vmi, surroundings=Surroundings(temporary=True))
    assert made["spec"]["containers"][0]["command"] == ["/bin/bash", "-c", "echo", "bound PVCs"]
    assert made["metadata"]["annotations"]["kubevirt.io/ephemeral-provisioning"] == "true"
    assert named(made["spec"]["volumes"], "d")["persistentVolumeClaim"] == {"claimName": "c"}


def test_the_security_of_both_users() -> None:
    safe, root = pod(instance())["spec"], pod(instance(status={"runtimeUser": 0}))["spec"]
    assert safe["securityContext"] == {
        "fsGroup": 107,
        "runAsUser": 107,
        "runAsGroup": 107,
        "runAsNonRoot": True,
    }
    assert root["securityContext"] == {"fsGroup": 107, "runAsUser": 0}
    assert safe["containers"][0]["securityContext"] == {
        "runAsUser": 107,
        "runAsGroup": 107,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
    }
    assert root["containers"][0]["securityContext"] == {
        "runAsUser": 0,
        "runAsNonRoot": False,
        "capabilities": {"add": ["NET_BIND_SERVICE", "SYS_NICE"]},
    }
    marked = instance(status={"runtimeUser": 0}, annotations={"kubevirt.io/nonroot": ""})
    assert pod(marked)["spec"]["securityContext"] == safe["securityContext"]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (
            {"localhostProfile": "kubevirt/a.json"},
            {"type": "Localhost", "localhostProfile": "kubevirt/a.json"},
        ),
        ({"runtimeDefaultProfile": True}, {"type": "RuntimeDefault"}),
        ({}, None),
    ],
)
def test_seccomp(profile: dict[str, Any], expected: dict[str, str] | None) -> None:
    config = {"seccompConfiguration": {"virtualMachineInstanceProfile": {"customProfile": profile}}}
    assert pod(instance(), config)["spec"]["securityContext"].get("seccompProfile") == expected


def test_selinux() -> None:
    vmi = instance(
        devices={"filesystems": [{"name": "f", "virtiofs": {}}]},
        volumes=[{"name": "f", "emptyDisk": {"capacity": "1Gi"}}],
    )
    config = {"selinuxLauncherType": "spc_t", **gates("DockerSELinuxMCSWorkaround")}
    made = pod(vmi, config)["spec"]
    assert made["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}
    assert "seLinuxOptions" not in made["containers"][0]["securityContext"]
    assert made["containers"][1]["securityContext"]["seLinuxOptions"] == {"type": "spc_t", "level": "s0"}


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["name", "namespace"])
def test_name_and_namespace_must_be_set(name: str) -> None:
    vmi = instance()
    del vmi["metadata"][name]
    with pytest.raises(FieldError) as caught:
        pod(vmi)
    assert caught.value.field == f"metadata.{name}"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"volumes": "x"}, "spec.volumes"),
        ({"devices": {"disks": [1]}}, "spec.domain.devices.disks[0]"),
        ({"memory": {"guest": "lots"}}, "spec.domain.memory.guest"),
        ({"readinessProbe": {"exec": {"command": [1]}}}, "spec.readinessProbe.exec.command[0]"),
        ({"labels": {"logVerbosity": "much"}}, "metadata.labels.logVerbosity"),
        ({"volumes": [{"name": "s", "sysprep": {}}]}, "spec.volumes[0].sysprep"),
    ],
)
def test_an_error_names_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError) as caught:
        pod(instance(**change))
    assert caught.value.field == field


def test_claims_must_be_told_in_a_way_that_is_understood() -> None:
    with pytest.raises(FieldError) as caught:
        pod(instance(), pvcs={"c": "Block"})
    assert caught.value.field == "pvcs.c"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PLACES = [
    ("spec", "volumes"),
    ("spec", "networks"),
    ("spec", "affinity"),
    ("spec", "accessCredentials"),
    ("spec", "livenessProbe"),
    ("spec", "domain"),
    ("spec", "domain", "devices"),
    ("spec", "domain", "devices", "interfaces"),
    ("spec", "domain", "devices", "gpus"),
    ("spec", "domain", "cpu"),
    ("spec", "domain", "resources"),
    ("spec", "domain", "memory"),
    ("spec", "domain", "firmware"),
    ("spec", "domain", "launchSecurity"),
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("status", "volumeStatus"),
    ("status", "topologyHints"),
]


@given(st.sampled_from(PLACES), JSON)
def test_anything_gives_a_pod_or_an_error_that_names_a_field(place: tuple[str, ...], value: Any) -> None:
    vmi = instance()
    parent: Any = vmi
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    before = copy.deepcopy(vmi)
    refused: FieldError | None = None
    try:
        json.dumps(pod(vmi))
    except FieldError as error:
        refused = error
    assert refused is None or (refused.field and refused.message)
    assert vmi == before


def test_nothing_is_shared_with_the_arguments() -> None:
    vmi = instance(affinity={"nodeAffinity": {}}, tolerations=[{"key": "a"}], labels={"a": "b"})
    config: dict[str, Any] = gates(nodeSelectors={"zone": "a"})
    before = copy.deepcopy((vmi, config))
    made = pod(vmi, config)
    made["spec"]["tolerations"][0]["key"] = made["spec"]["nodeSelector"]["zone"] = "changed"
    made["spec"]["affinity"]["nodeAffinity"].clear()
    made["metadata"]["labels"].clear()
    assert (vmi, config) == before


def test_a_configuration_that_was_read_before_will_do() -> None:
    config = gates(useEmulation=True)
    vmi = instance()
    once = kvnode.render_launcher_pod(vmi, "amd64", ClusterConfig.of(config))
    assert once["spec"]["containers"][0]["resources"] == compute(vmi, config)["resources"]
