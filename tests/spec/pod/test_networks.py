"""What networks add to a pod."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvnode.api.errors import FieldError
from kvnode.spec.pod import LauncherSettings
from tests.spec.pod.helpers import instance, named, pod

IN_A_CLUSTER = LauncherSettings(network_annotations=True)
PLUGINS = {
    "network": {
        "binding": {
            "nad": {"networkAttachmentDefinition": "other/plug"},
            "info": {"downwardAPI": "device-info", "sidecarImage": "s:1"},
        }
    }
}


def vmi(*pairs: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    """Interfaces with their networks, all of one name each."""
    interfaces = [{"name": f"n{i}", **interface} for i, (interface, _) in enumerate(pairs)]
    networks = [{"name": f"n{i}", **network} for i, (_, network) in enumerate(pairs)]
    return instance(devices={"interfaces": interfaces}, networks=networks)


def annotations(made: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod(made, PLUGINS, settings=IN_A_CLUSTER)["metadata"]["annotations"]
    return found


def attached(made: dict[str, Any]) -> Any:
    return json.loads(annotations(made)["k8s.v1.cni.cncf.io/networks"])


def test_a_pod_network_alone_attaches_nothing() -> None:
    assert "k8s.v1.cni.cncf.io/networks" not in annotations(vmi(({"bridge": {}}, {"pod": {}})))


def test_secondary_networks_are_attached_by_hashed_names() -> None:
    made = vmi(
        ({"bridge": {}}, {"pod": {}}),
        ({"bridge": {}, "macAddress": "02:00:00:00:00:01"}, {"multus": {"networkName": "blue"}}),
        ({"sriov": {}}, {"multus": {"networkName": "elsewhere/red"}}),
        ({"bridge": {}, "state": "absent"}, {"multus": {"networkName": "gone"}}),
    )
    assert attached(made) == [
        {"name": "blue", "namespace": "ns1", "mac": "02:00:00:00:00:01", "interface": "pod676b8bb84ce"},
        {"name": "red", "namespace": "elsewhere", "interface": "pod0480a93d2e9"},
    ]


def test_names_are_those_of_the_networks_hash() -> None:
    """The values are those of `pkg/network/multus/annotation_test.go`."""
    made = instance(
        devices={"interfaces": [{"name": "red", "bridge": {}}, {"name": "blue", "bridge": {}}]},
        networks=[{"name": name, "multus": {"networkName": "x"}} for name in ("blue", "red")],
    )
    assert [a["interface"] for a in attached(made)] == ["podb1f51a511f1", "pod16477688c0e"]


def test_another_default_network() -> None:
    made = vmi(({"bridge": {}}, {"multus": {"networkName": "main", "default": True}}))
    assert annotations(made)["v1.multus-cni.io/default-network"] == "main"
    assert "k8s.v1.cni.cncf.io/networks" not in annotations(made)


def test_masquerade_is_told_to_istio() -> None:
    found = annotations(vmi(({"masquerade": {}}, {"pod": {}})))
    assert found["traffic.sidecar.istio.io/kubevirtInterfaces"] == "k6t-eth0"
    assert found["istio.io/reroute-virtual-interfaces"] == "k6t-eth0"


def test_a_plugin_attaches_a_network_of_its_own() -> None:
    made = vmi(({"binding": {"name": "nad"}}, {"pod": {}}))
    assert attached(made) == [{"name": "plug", "namespace": "other", "cni-args": {"logicNetworkName": "n0"}}]


def test_the_bare_rendering_has_no_network_annotations() -> None:
    made = pod(vmi(({"masquerade": {}}, {"pod": {}})))["metadata"]["annotations"]
    assert not [name for name in made if "istio" in name or "cni" in name]


def test_a_plugin_must_be_registered() -> None:
    with pytest.raises(FieldError, match="'x' is no network binding plugin") as caught:
        pod(vmi(({"bridge": {}}, {"pod": {}}), ({"binding": {"name": "x"}}, {"pod": {}})), PLUGINS)
    assert caught.value.field == "spec.domain.devices.interfaces[1].binding.name"


@pytest.mark.parametrize(
    ("interface", "there"),
    [({"sriov": {}}, True), ({"binding": {"name": "info"}}, True), ({"binding": {"name": "nad"}}, False)],
)
def test_device_addresses_are_handed_in(interface: dict[str, Any], there: bool) -> None:
    spec = pod(vmi((interface, {"multus": {"networkName": "a"}})), PLUGINS)["spec"]
    mounts = [m["mountPath"] for m in spec["containers"][0]["volumeMounts"]]
    assert ("/etc/podinfo" in mounts) == there
    if there:
        item = named(spec["volumes"], "network-info-annotation")["downwardAPI"]["items"][0]
        assert item["fieldRef"]["fieldPath"] == "metadata.annotations['kubevirt.io/network-info']"


def test_a_plugins_sidecar_reads_them_too() -> None:
    spec = pod(vmi(({"binding": {"name": "info"}}, {"pod": {}})), PLUGINS)["spec"]
    sidecar = named(spec["containers"], "hook-sidecar-0")
    assert sidecar["image"] == "s:1"
    assert {"name": "NETWORK_BINDING_PLUGIN_NAME", "value": "info"} in sidecar["env"]
    assert {"name": "network-info-annotation", "mountPath": "/etc/podinfo"} in sidecar["volumeMounts"]
