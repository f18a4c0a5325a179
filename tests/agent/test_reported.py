"""What users ran into with node agents, through the agent as it runs; test ids name the report."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest

from kvnode.agent.cluster import ApiServer
from kvnode.agent.errors import AgentError
from kvnode.agent.podnetwork import PodNetwork
from kvnode.agent.topology import read_topology
from kvnode.agent.vmi import copy_of
from kvnode.agent.watchdog import Watchdog
from kvnode.api.errors import ConversionError
from kvnode.converter import convert
from kvnode.kube.client import PatchType
from kvnode.kube.expectations import Expectations
from kvnode.kube.objects import Object
from kvnode.kube.resources import EVENTS, PODS, VIRTUAL_MACHINE_INSTANCES
from kvnode.launcher.context import topology_of
from kvnode.net.podnetwork import PodNetworks
from tests.agent.lab import Lab, called, lab, until
from tests.agent.node import SPEC, configuration, eventually
from tests.agent.remote import SOCKETS, Remote
from tests.agent.test_faults_launchers import synchronized
from tests.cluster.cluster import Cluster
from tests.fast.helpers import MINIMAL_CONTEXT, merged
from tests.kube.faults import Fault
from tests.kube.loops import minutes
from tests.kube.support import client_of, vmi
from tests.reports import report

__all__ = ["configuration"]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="launchers have roots of their own"),
]


def record(node: Lab, **about: str) -> Path:
    """Leave a record of a launcher behind."""
    folder = node.settings.private / "ghost-records"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / about["uid"]
    path.write_text(json.dumps({"namespace": node.namespace, "name": "testvmi", **about}))
    return path


@report("B48")
@minutes(3)
async def test_a_record_of_an_older_vm_of_the_name(control_plane: Cluster, namespace: str) -> None:
    async with lab(control_plane, namespace) as node:
        old = record(node, uid="old", socketFile=str(node.folder / "dead"))
        async with node.agent() as agent:
            remote = await node.run()
            assert [one.uid for one in agent.ghosts] == [remote.uid]
        assert not old.exists()
        assert old.with_name(remote.uid).exists()
        assert node.history.phases() == ["Scheduled", "Running"]


@report("B48")
@minutes(3)
async def test_a_record_of_a_vm_that_moved_away(control_plane: Cluster, namespace: str) -> None:
    async with lab(control_plane, namespace) as node:
        moved = vmi(namespace, "moved")
        moved["metadata"]["labels"] = {"kubevirt.io/nodeName": "another"}
        moved["status"] = {"phase": "Running", "nodeName": "another"}
        made = await node.client.create(VIRTUAL_MACHINE_INSTANCES, moved)
        old = record(node, name="moved", uid=made["metadata"]["uid"], socketFile=str(node.folder / "dead"))
        async with node.agent():
            await until(lambda: not old.exists())
        await node.history.reaches(made)
        assert node.history.phases("moved") == ["Running"], (
            "another agent's, and not to be written by this one"
        )


@report("B50")
@minutes(3)
async def test_a_pod_s_folder_that_vanishes(control_plane: Cluster, namespace: str) -> None:
    now = 0.0
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        agent.rounds.watchdog = Watchdog(lambda: now)
        remote = await node.run()
        finalizer = {"metadata": {"finalizers": ["kubevirt.io/foregroundDeleteVirtualMachine"]}}
        await node.client.patch(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace, finalizer, PatchType.MERGE)
        await remote.stop()
        shutil.rmtree(node.settings.pods / "p-testvmi")
        await node.remove()
        ghost = next(iter(agent.ghosts))
        for now in (0.0, 31.0):  # noqa: B007 - it is the watchdog's clock
            await agent.rounds.look_after(ghost)
        await node.until("Failed")
        await until(lambda: not list(agent.ghosts))
        await until(lambda: not list((node.settings.private / "ghost-records").iterdir()))
        await until(lambda: agent.launchers.known(remote.uid) is None)
        # The finalizer is the controller's to remove; its VMI is final now.
        assert node.history.phases() == ["Scheduled", "Running", "Failed"]


async def launcher_pod(node: Lab, name: str, owner: str = "") -> str:
    """A launcher's pod on the node; its UID."""
    owners = [
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "name": "testvmi",
            "uid": owner,
            "controller": True,
        }
    ]
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": node.namespace, "labels": {"kubevirt.io": "virt-launcher"}},
        "spec": {"nodeName": node.name, "containers": [{"name": "compute", "image": "none"}]},
    }
    if owner:
        pod["metadata"]["ownerReferences"] = owners
    return str((await node.client.create(PODS, pod))["metadata"]["uid"])


@report("B51")
@pytest.mark.parametrize("told_apart_by", ["leaving", "owner", "nothing"])
@minutes(3)
async def test_two_launchers_for_one_vm(control_plane: Cluster, namespace: str, told_apart_by: str) -> None:
    async with lab(control_plane, namespace) as node, node.agent():
        made = await node.client.create(
            VIRTUAL_MACHINE_INSTANCES, {**vmi(namespace, "testvmi"), "spec": SPEC}
        )
        remotes = []
        for name in ("one", "two"):
            owner = made["metadata"]["uid"] if (told_apart_by, name) == ("owner", "two") else ""
            uid = await launcher_pod(node, name, owner)
            (node.settings.pods / uid / SOCKETS).mkdir(parents=True)
            remotes.append((uid, Remote(node.settings.pods, node.folder / f"r-{name}", uid, made)))
            node.remotes.append(remotes[-1][1])
            await remotes[-1][1].start()
        if told_apart_by == "leaving":
            await node.client.delete(PODS, "one", namespace, grace_seconds=600)
        patch = {
            "metadata": {"labels": {"kubevirt.io/nodeName": node.name}},
            "status": {
                "phase": "Scheduled",
                "nodeName": node.name,
                "activePods": {uid: node.name for uid, _ in remotes},
            },
        }
        await node.client.patch(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace, patch, PatchType.MERGE)
        one, two = remotes[0][1], remotes[1][1]
        if told_apart_by != "nothing":
            await called(two, "sync")
            assert await synchronized(node) == ""
        else:

            async def told() -> bool:
                message = await synchronized(node)
                return all(uid in message for uid, _ in remotes)

            await eventually(told)
            assert not two.calls
            await node.client.delete(PODS, "two", namespace, grace_seconds=600)
            await called(one, "sync")
        assert not (two if told_apart_by == "nothing" else one).calls


TRUNCATED = [
    "<topology><cells num='1'><cell id='0'/></cells></topology>",
    "<topology><cells num='1'><cell id='0'><memory/></cell></cells></topology>",
    "<topology><cells num='1'><cell id='0'><memory unit='KiB'>9</memory><cpus/></cell></cells></topology>",
    "<topology><cells num='1'><cell id='0'><distances/><cpus num='1'><cpu id='0'/></cpus></cell></cells></topology>",
    "<topology><cells/></topology>",
    "",
]


@report("B70")
@pytest.mark.parametrize("topology", TRUNCATED)
@minutes(3)
async def test_a_host_that_says_half_of_what_it_is(
    control_plane: Cluster, namespace: str, topology: str
) -> None:
    async with lab(control_plane, namespace) as node:
        node.settings.capabilities.mkdir()
        text = f"<capabilities><host><cpu><arch>x86_64</arch></cpu>{topology}</host></capabilities>"
        (node.settings.capabilities / "capabilities.xml").write_text(text)
        async with node.agent() as agent:
            await node.run()
            assert all(not cell.distances for cell in agent.node.topology.numa_cells)


@report("B70")
@pytest.mark.parametrize("topology", TRUNCATED)
def test_numa_of_a_host_that_says_half_of_what_it_is(topology: str) -> None:
    """What the agent makes of it goes to the launcher, which refuses to map what is not known."""
    cpu = {"cores": 2, "dedicatedCpuPlacement": True, "numa": {"guestMappingPassthrough": {}}}
    memory = {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}}
    pinned = {"metadata": {"name": "testvmi", "uid": "u"}, "spec": {"domain": {"cpu": cpu, "memory": memory}}}
    told = topology_of(read_topology(f"<capabilities><host>{topology}</host></capabilities>"))
    with pytest.raises(ConversionError, match=r"^spec\.domain\.cpu\.numa: cannot map the host's NUMA cells"):
        convert(pinned, merged(MINIMAL_CONTEXT, {"cpuSet": [0, 1], "topology": told}))
    del cpu["dedicatedCpuPlacement"], cpu["numa"]
    assert convert(pinned, merged(MINIMAL_CONTEXT, {"topology": told}))


@report("B74")
@minutes(3)
async def test_news_of_a_guest_that_came_up_wait_for_no_back_off(
    control_plane: Cluster, namespace: str
) -> None:
    """Two dozen failures make the next try wait for a minute."""
    key = f"{namespace}/testvmi"
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        remote = await node.launch(failure="played")
        await until(lambda: agent.queue.failures(key) > 2)  # the condition has been written
        for _ in range(24):
            agent.queue.add_rate_limited(key)
        await until(lambda: agent.queue.failures(key) > 26 and agent.queue.delayed)
        await remote.do("say", "failure", "")
        began = asyncio.get_running_loop().time()
        await remote.become("Running", "Unknown")
        await node.until("Running")
        assert asyncio.get_running_loop().time() - began < 30, "half of what the back-off asks for"
        await until(lambda: agent.queue.failures(key) == 0)


@pytest.fixture
def refusal() -> bytes:
    """A server that takes no checksums."""
    cause = {"reason": "FieldValueInvalid", "field": "status.selinuxContext", "message": "played"}
    return orjson.dumps(
        {
            "kind": "Status",
            "status": "Failure",
            "code": 422,
            "reason": "Invalid",
            "message": "status.selinuxContext is not taken",
            "details": {"causes": [cause]},
        }
    )


@report("B75")
@minutes(3)
async def test_a_field_that_is_refused_does_not_hold_the_phase(
    control_plane: Cluster, namespace: str, refusal: bytes
) -> None:
    write = "PATCH .*virtualmachineinstances/testvmi"
    async with lab(control_plane, namespace) as node, node.agent():
        remote = await node.launch()
        await called(remote, "sync")
        await until(lambda: "selinuxContext" in node.history.status())
        # The agent may mend it before the change is answered.
        node.server.faults.append(Fault(write, status=422, body=refusal))
        await node.client.patch(
            VIRTUAL_MACHINE_INSTANCES,
            "testvmi",
            namespace,
            {"status": {"selinuxContext": "another"}},
            PatchType.MERGE,
        )
        await remote.become("Running", "Unknown")
        found = await node.until("Running")
        assert found["status"]["phase"] == "Running"

        async def told() -> bool:
            events = await node.client.list_all(EVENTS, namespace)
            return any(
                one["reason"] == "StatusFieldRefused" and "selinuxContext" in one["message"] for one in events
            )

        await eventually(told)


@report("B75")
@pytest.mark.parametrize("checksum", [0, 2**31, 4294967295])
@minutes(1)
async def test_a_checksum_of_32_bits_is_taken(control_plane: Cluster, namespace: str, checksum: int) -> None:
    async with client_of(control_plane) as client:
        old = await client.create(VIRTUAL_MACHINE_INSTANCES, vmi(namespace, "a"))
        new = copy_of(old)
        new["status"] = {
            "volumeStatus": [{"name": "d", "target": "", "containerDiskVolume": {"checksum": checksum}}]
        }
        await ApiServer(client, Expectations()).write_status(old, new)
        stored = await client.get(VIRTUAL_MACHINE_INSTANCES, "a", namespace)
        found = stored["status"]["volumeStatus"][0]["containerDiskVolume"]["checksum"]
        assert found == checksum
        assert isinstance(found, int)


def descriptors() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@report("B42")
@minutes(3)
async def test_the_namespace_of_a_process_that_is_gone(control_plane: Cluster, namespace: str) -> None:
    """It is not made, it is told of, and nothing is left open however often it is tried."""
    named = Path("/run/netns")
    before = sorted(named.iterdir()) if named.is_dir() else []
    networked = vmi(namespace, "testvmi")
    networked["spec"]["domain"]["devices"]["interfaces"] = [{"name": "default", "masquerade": {}}]
    networked["spec"]["networks"] = [{"name": "default", "pod": {}}]
    networked["metadata"]["uid"] = "u"
    gone = await asyncio.create_subprocess_exec("true")
    await gone.wait()

    async def launcher(_vmi: Object) -> SimpleNamespace:
        return SimpleNamespace(pid=gone.pid, proc=Path(f"/proc/{gone.pid}"))

    async with lab(control_plane, namespace) as node, node.agent() as agent:
        network = PodNetwork(PodNetworks(node.folder / "n"), launcher, agent.config)
        with pytest.raises(AgentError, match=f"process {gone.pid}"):
            await network.setup(networked, networked["spec"]["networks"])
        open_before = descriptors()
        for _ in range(1000):
            with pytest.raises(AgentError, match=f"process {gone.pid}"):
                await network.setup(networked, networked["spec"]["networks"])
        assert descriptors() <= open_before + 100, "the agent beside it may have opened some"
    assert (sorted(named.iterdir()) if named.is_dir() else []) == before
