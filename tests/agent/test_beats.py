"""The node's heartbeat and labels on a real API server."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from kvnode.agent.beats import Heart, Labels, obsolete_models
from kvnode.agent.capabilities import read_node
from kvnode.agent.kvm import hyperv_features, msrs
from kvnode.agent.labels.labeller import OBSOLETE_MODELS
from kvnode.kube.client import Client
from kvnode.kube.objects import Object
from kvnode.kube.resources import NODES
from kvnode.spec.config import ClusterConfig
from tests.cluster.cluster import Cluster
from tests.kube.loops import real_time
from tests.kube.support import background, client_of

CAPABILITIES = """<capabilities><host>
  <cpu><counter name='tsc' frequency='2500000000' scaling='no'/></cpu>
  <topology><cells><cell id='0'><memory unit='KiB'>1024</memory><cpus><cpu id='3' siblings='3'/></cpus></cell></cells>
  </topology></host>
  <guest><arch name='x86_64'><machine>q35</machine><machine>pc-q35-9.0</machine></arch></guest>
  <guest><arch name='i686'><machine>q35</machine></arch></guest></capabilities>"""
TSC = 0x10

DOMAIN_CAPABILITIES = """<domainCapabilities><cpu>
  <mode name='host-model' supported='yes'><model fallback='forbid'>Skylake</model><vendor>Intel</vendor>
    <feature policy='require' name='vmx'/></mode>
  <mode name='custom' supported='yes'><model usable='yes'>Skylake</model><model usable='no'>Icelake</model>
    <model usable='yes'>Conroe</model></mode></cpu></domainCapabilities>"""
FEATURES = "<cpu><feature policy='require' name='aes'/><feature policy='disable' name='avx'/></cpu>"


@pytest.fixture
def capabilities(tmp_path: Path) -> Path:
    """The folder that the init container fills."""
    (tmp_path / "capabilities.xml").write_text(CAPABILITIES)
    (tmp_path / "virsh_domcapabilities.xml").write_text(DOMAIN_CAPABILITIES)
    (tmp_path / "supported_features.xml").write_text(FEATURES)
    return tmp_path


async def make_node(client: Client, name: str, **labels: str) -> Object:
    metadata = {"name": name, "labels": labels}
    return await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})


class Events:
    """What is told about the node."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def record(self, obj: Object, kind: str, reason: str, message: str) -> None:  # noqa: ARG002
        self.told.append(reason)


def labels_of(client: Client, name: str, folder: Path, raw: dict[str, Any], events: Events) -> Labels:
    node = read_node(folder, "amd64")
    return Labels(
        client, name, node, config=ClusterConfig, raw=lambda: raw, events=events, devices=folder / "none"
    )


@pytest.mark.cluster
@real_time
async def test_the_node_beats_and_says_when_it_stops(
    control_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    name = f"beats-{namespace}"
    state = tmp_path / "var/lib/kubelet/cpu_manager_state"
    state.parent.mkdir(parents=True)
    state.write_text('{"policyName":"static"}')
    config = ClusterConfig.from_mapping({"developerConfiguration": {"featureGates": ["CPUManager"]}})
    async with client_of(control_plane) as client:
        await make_node(client, name, mine="kept")
        heart = Heart(client, name, lambda: config, lambda: True, tmp_path)
        async with background(heart.run()):

            async def beaten() -> Object:
                while True:
                    found = (await client.get(NODES, name))["metadata"]
                    if found["labels"].get("kubevirt.io/schedulable") == "true":
                        return found
                    await asyncio.sleep(0.02)

            found = await beaten()
            assert found["labels"]["kubevirt.io/cpumanager"] == found["labels"]["cpumanager"] == "true"
            assert found["labels"]["mine"] == "kept"
            assert found["annotations"]["kubevirt.io/heartbeat"].endswith("Z")
        found = (await client.get(NODES, name))["metadata"]
        assert found["labels"]["kubevirt.io/schedulable"] == "false"


@pytest.mark.cluster
@real_time
async def test_labels_are_what_the_hypervisor_earns(
    control_plane: Cluster, namespace: str, capabilities: Path
) -> None:
    name, events = f"labels-{namespace}", Events()
    async with client_of(control_plane) as client:
        await make_node(client, name, **{"mine": "kept", "cpu-model.node.kubevirt.io/Old": "true"})
        assert await labels_of(client, name, capabilities, {}, events).label()
        labels = (await client.get(NODES, name))["metadata"]["labels"]
        expected = {
            "cpu-feature.node.kubevirt.io/aes",
            "cpu-model.node.kubevirt.io/Skylake",
            "cpu-model-migration.node.kubevirt.io/Icelake",
            "machine-type.node.kubevirt.io/pc-q35-9.0",
            "host-model-cpu.node.kubevirt.io/Skylake",
            "cpu-vendor.node.kubevirt.io/Intel",
        }
        assert expected <= labels.keys()
        assert labels["cpu-timer.node.kubevirt.io/tsc-frequency"] == "2500000000"
        assert labels["mine"] == "kept"
        assert not {"cpu-model.node.kubevirt.io/Old", "cpu-model.node.kubevirt.io/Conroe"} & labels.keys()
        version = (await client.get(NODES, name))["metadata"]["resourceVersion"]
        assert await labels_of(client, name, capabilities, {}, events).label()
        assert (await client.get(NODES, name))["metadata"]["resourceVersion"] == version
        assert not events.told
        obsolete = {"obsoleteCPUModels": {"Skylake": True}}
        assert await labels_of(client, name, capabilities, obsolete, events).label()
        labels = (await client.get(NODES, name))["metadata"]["labels"]
        assert "cpu-model.node.kubevirt.io/Conroe" in labels
        assert "node-labeller.kubevirt.io/obsolete-host-model" in labels
        assert events.told == ["HostModelIsObsolete"]


@pytest.mark.cluster
@real_time
async def test_without_libvirts_word_labels_are_left_alone(
    control_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    name = f"silent-{namespace}"
    async with client_of(control_plane) as client:
        await make_node(client, name, **{"cpu-model.node.kubevirt.io/Old": "true"})
        assert await labels_of(client, name, tmp_path, {}, Events()).label()
        labels = (await client.get(NODES, name))["metadata"]["labels"]
        assert labels == {"cpu-model.node.kubevirt.io/Old": "true"}


def test_the_node_s_topology_and_host_model(capabilities: Path) -> None:
    node = read_node(capabilities, "amd64")
    assert node.host_model == "Skylake"
    assert node.machines == ("q35", "pc-q35-9.0")
    assert node.topology.numa_cells[0].cpus[0].id == 3


def test_files_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "capabilities.xml").write_text("<capabilities>")
    node = read_node(tmp_path, "amd64")
    assert (node.hypervisor, node.machines, node.host_model) == (None, (), "")


def test_obsolete_models_are_the_keys_that_are_given() -> None:
    assert obsolete_models({}) == OBSOLETE_MODELS
    assert obsolete_models({"obsoleteCPUModels": {"a": False}}) == {"a"}


def test_hyperv_without_kvm(tmp_path: Path) -> None:
    (tmp_path / "kvm").touch()
    assert hyperv_features(tmp_path / "kvm") == hyperv_features(tmp_path / "none") == ()


def test_the_registers_that_this_machine_s_kvm_lists() -> None:
    try:
        kvm = os.open("/dev/kvm", os.O_RDWR)
    except OSError as error:
        pytest.skip(f"this machine has no KVM: {error.strerror}")
    try:
        assert TSC in msrs(kvm)
    finally:
        os.close(kvm)
