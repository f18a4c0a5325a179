"""The agent as a DaemonSet, and VMs that are bound to nodes by hand."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.deploy import AGENT, NAMESPACE, Kubectl
from tests.e2e.classic import with_container_disks
from tests.e2e.leftovers import settled, state
from tests.e2e.machine import PATIENCE, Machine, Shape, start_neighbour, wait_for


def agent_pods(kubectl: Kubectl) -> dict[str, str]:
    """UIDs of the agents' pods that are ready, by node."""
    pods = kubectl.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=kvnode-agent")["items"]
    return {
        pod["spec"]["nodeName"]: pod["metadata"]["uid"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
    }


@pytest.mark.parametrize("node", ["node1", "node2"])
def test_a_node_has_labels_and_devices(kubectl: Kubectl, node: str) -> None:
    assert node in agent_pods(kubectl)

    def ready() -> bool:
        found = kubectl.get("node", node)
        labels = found["metadata"]["labels"]
        labelled = "machine-type.node.kubevirt.io/q35" in labels
        taken = found["status"]["allocatable"].get("devices.kubevirt.io/tun") == "1k"
        return labelled and taken and labels.get("kubevirt.io/schedulable") == "true"

    wait_for("labels, a tun for each VM, and that VMs may come", ready)
    labels = kubectl.get("node", node)["metadata"]["labels"]
    for kind in ("cpu-feature", "cpu-vendor", "host-model-cpu"):
        assert any(name.startswith(f"{kind}.node.kubevirt.io/") for name in labels), kind


def test_a_page_is_read_through_the_api_server(kubectl: Kubectl) -> None:
    """Its links lead on from there, though it knows nothing of the path that it is served below."""
    pods = kubectl.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=kvnode-agent")["items"]
    here = f"/api/v1/namespaces/{NAMESPACE}/pods/{pods[0]['metadata']['name']}:8185/proxy/"
    page = kubectl("get", "--raw", here)
    assert f"<h1>{pods[0]['spec']['nodeName']}</h1>" in page
    links = {urljoin(here, one) for one in re.findall(r'<a href="([^"]*)"', page)}
    assert links == {f"{here}{name}" for name in ("?follow", "metrics", "healthz", "readyz")}
    said = {link.removeprefix(here): kubectl("get", "--raw", link) for link in links}
    assert "kubevirt_virt_handler_ready_status" in said["metrics"]
    assert said["healthz"] == said["readyz"] == "ok\n"


def interface_of(machine: Machine) -> Any:
    """The interface as the status has it, once the guest agent has told of it."""

    def interface() -> Any:
        [found] = machine.vmi()["status"]["interfaces"]
        return found if found["infoSource"] == "domain, guest-agent" else None

    return wait_for("the guest agent's word", interface)


def test_kubectl_shows_the_machine(machine: Machine, kubectl: Kubectl) -> None:
    found = interface_of(machine)
    assert found["interfaceName"] == "eth0"
    assert found["ipAddress"] == machine.pod_status()["podIP"]
    assert machine.conditions()["LiveMigratable"] == "True"
    assert "Synchronized" not in machine.conditions(), "it is there only when something failed"
    columns = kubectl("get", "vmi", "-n", machine.namespace, machine.name, "--no-headers").split()
    assert columns[0] == machine.name
    assert columns[2:5] == ["Running", found["ipAddress"], "node1"]
    about = f"involvedObject.name={machine.name}"
    events = kubectl("get", "events", "-n", machine.namespace, "--field-selector", about)
    assert "Created" in events
    assert "Started" in events


def test_the_guest_had_its_seed_and_its_address(machine: Machine) -> None:
    console = machine.console()
    assert "hello from the user data of demo" in console
    assert "kvnode-guest: address eth0 10.0.2.2" in console


def test_a_pod_on_the_other_node_reaches_the_guest(machine: Machine, kubectl: Kubectl) -> None:
    neighbour = start_neighbour(kubectl, machine.namespace, "node2")
    address = machine.pod_status()["podIP"]
    said = kubectl("exec", "-n", machine.namespace, neighbour, "--", "ping", "-c", "5", "-W", "5", address)
    assert " 0% packet loss" in said


def roll(kubectl: Kubectl, _machine: Machine) -> None:
    kubectl("rollout", "restart", "-n", NAMESPACE, AGENT)


def kill(_kubectl: Kubectl, machine: Machine) -> None:
    node = machine.node
    for pid in machine.cluster.run_on(node, "pgrep", "-f", "/kvnode agent$").split():
        machine.cluster.run_on(node, "kill", "-9", pid)


@pytest.mark.parametrize("end_agents", [roll, kill])
def test_the_guest_goes_on_without_an_agent(
    machine: Machine, kubectl: Kubectl, end_agents: Callable[[Kubectl, Machine], None]
) -> None:
    """The same QEMU, no boot, no phase but Running, no word less in the status."""
    interface = interface_of(machine)
    qemu, booted = machine.qemu(), machine.console()
    before = kubectl.get("pods", "-n", NAMESPACE)["items"]
    restarts = {pod["metadata"]["uid"]: restarts_of(pod) for pod in before}
    watch = [*kubectl.command, "get", "vmi", "-n", machine.namespace, machine.name]
    phases = '-o=jsonpath={.status.phase}{"\\n"}'
    with subprocess.Popen([*watch, "--watch", phases], stdout=subprocess.PIPE, text=True) as watching:
        try:
            end_agents(kubectl, machine)

            def started_anew() -> bool:
                pods = kubectl.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=kvnode-agent")[
                    "items"
                ]
                there = [pod for pod in pods if pod["spec"]["nodeName"] == machine.node]
                return any(restarts_of(pod) > restarts.get(pod["metadata"]["uid"], -1) for pod in there)

            wait_for("another agent", started_anew)
            kubectl.roll_out(AGENT)
            heard = machine.vmi()["metadata"]["resourceVersion"]
            # The new agent knows the VM when it takes its status up: it writes what was spoilt.
            kubectl(
                *("patch", "vmi", "-n", machine.namespace, machine.name, "--type=merge"),
                *("-p", '{"status":{"machine":{"type":"spoilt"}}}'),
            )
            wait_for("the new agent writes", lambda: machine.vmi()["status"]["machine"]["type"] != "spoilt")
            assert machine.vmi()["metadata"]["resourceVersion"] != heard
        finally:
            watching.terminate()
        assert watching.stdout is not None
        seen = set(watching.stdout.read().split())
    assert seen == {"Running"}
    assert machine.qemu() == qemu
    assert machine.console() == booted, "the guest says more only when it boots"
    assert "AgentConnected" in machine.conditions()
    assert machine.vmi()["status"]["interfaces"] == [interface]


def restarts_of(pod: dict[str, dict[str, list[dict[str, int]]]]) -> int:
    """How often the pod's containers were started again."""
    return sum(one["restartCount"] for one in pod["status"].get("containerStatuses", []))


def image_volumes(pod: dict[str, Any], _uid: str) -> dict[str, Any]:
    return pod


@pytest.mark.parametrize("shape", [image_volumes, with_container_disks])
def test_a_deleted_machine_leaves_nothing(
    agents: Cluster, kubectl: Kubectl, new_machine: Machine, shape: Shape
) -> None:
    """Whichever way its container disk comes into the pod."""
    new_machine.shape = shape
    before = settled(agents, new_machine.node)
    new_machine.create()
    new_machine.await_up()
    kinds = {line.partition(" ")[0] for line in state(agents, new_machine.node) - before}
    assert kinds == {"mount", "link", "network", "pod", "record", "process"}, "all of them are to be seen"
    log = [
        *kubectl.command,
        "logs",
        "-n",
        new_machine.namespace,
        new_machine.pod,
        "-c",
        "compute",
        "--follow",
    ]
    with subprocess.Popen(log, stdout=subprocess.PIPE, text=True) as following:
        new_machine.delete()
        said = following.communicate(timeout=PATIENCE)[0]
    assert "undefined the domain" in said
    assert "has not heard" not in said, "the agent hears the launcher out"
    wait_for("it has ended", lambda: new_machine.phase() != "Running")
    assert new_machine.phase() == "Succeeded", "the guest was asked to shut down, and did"
    new_machine.let_go()
    new_machine.await_gone()
    try:
        wait_for("nothing is left", lambda: state(agents, new_machine.node) <= before)
    finally:
        assert state(agents, new_machine.node) - before == set()
