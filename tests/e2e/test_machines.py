"""The whole: `kubectl apply` of VMs, and controllers, scheduler, kubelets, agents and launchers do their parts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.cluster.audit import asked
from tests.cluster.cluster import Cluster
from tests.cluster.deploy import NAMESPACE, Kubectl
from tests.e2e.leftovers import settled, state
from tests.e2e.machine import start_neighbour, wait_for
from tests.e2e.vm import Vm

AGE = r"\d+\w+"


@pytest.fixture(scope="module")
def machines(whole: Cluster, admin: Kubectl, home: str) -> Iterator[dict[str, Vm]]:
    """A VM of each run strategy under its name, all at once; that of Manual is not started."""
    made = {name: Vm(whole, admin, home, name.lower(), name) for name in STRATEGIES}
    try:
        for vm in made.values():
            vm.apply()
        yield made
    finally:
        for vm in made.values():
            admin("delete", "vm", "-n", home, vm.name, "--wait=false", "--ignore-not-found")
        for vm in made.values():
            vm.remove()


STRATEGIES = ("Always", "RerunOnFailure", "Once", "Manual")


def test_kubectl_prints_what_a_user_expects(machines: dict[str, Vm], admin: Kubectl, home: str) -> None:
    vm = machines["Always"]
    vm.await_up()
    wait_for("it is Ready", lambda: vm.vm()["status"].get("ready"))
    head, line = admin("get", "vm", "-n", home, vm.name).splitlines()
    assert head.split() == ["NAME", "AGE", "STATUS", "READY"]
    assert re.fullmatch(rf"always +{AGE} +Running +True *", line)
    head, line = admin("get", "vmi", "-n", home, vm.name).splitlines()
    assert head.split() == ["NAME", "AGE", "PHASE", "IP", "NODENAME", "READY"]
    address = re.escape(vm.pod()["status"]["podIP"])
    assert re.fullmatch(rf"always +{AGE} +Running +{address} +{vm.node()} +True *", line)


def test_a_pod_on_the_other_node_reaches_the_guest(
    machines: dict[str, Vm], admin: Kubectl, home: str
) -> None:
    vm = machines["Always"]
    vm.await_up()
    other = next(node for node in ("node1", "node2") if node != vm.node())
    said = admin(
        *("exec", "-n", home, start_neighbour(admin, home, other), "--"),
        *("ping", "-c", "5", "-W", "5", vm.pod()["status"]["podIP"]),
    )
    assert " 0% packet loss" in said


def test_always_is_made_again_when_its_guest_powers_off(machines: dict[str, Vm]) -> None:
    vm = machines["Always"]
    before = vm.await_up()
    vm.power_off()
    vm.await_up(after=before)
    assert len(vm.pods()) == 1


def test_rerun_on_failure_is_made_again_when_its_guest_fails_and_stays_off_when_it_powers_off(
    machines: dict[str, Vm],
) -> None:
    vm = machines["RerunOnFailure"]
    before = vm.await_up()
    vm.kill()
    vm.await_up(after=before)
    vm.power_off()
    vm.await_stopped(None)
    assert vm.pods() == []


def test_once_stays_off(machines: dict[str, Vm]) -> None:
    vm = machines["Once"]
    before = vm.await_up()
    address = vm.pod()["status"]["podIP"]
    vm.power_off()
    vm.await_stopped("Succeeded")
    assert vm.uid() == before
    assert vm.vmi()["status"]["interfaces"][0]["ipAddress"] == address


def test_manual_runs_when_it_is_asked_for(machines: dict[str, Vm]) -> None:
    vm = machines["Manual"]
    vm.await_stopped(None)
    vm.request({"action": "Start"})
    before = vm.await_up()
    assert not vm.vm()["status"].get("stateChangeRequests"), "it was served"
    vm.power_off()
    vm.await_stopped("Succeeded")
    assert vm.uid() == before
    vm.request({"action": "Stop", "uid": before}, {"action": "Start"})
    wait_for("another VMI runs", lambda: vm.uid() not in ("", before) and vm.phase() == "Running")


def test_a_deleted_machine_leaves_nothing(whole: Cluster, admin: Kubectl, home: str) -> None:
    before = settled(whole, "node2")
    vm = Vm(whole, admin, home, "shortlived", "Always")
    vm.apply(lambda spec: spec.update(nodeSelector={"kubernetes.io/hostname": "node2"}))
    try:
        vm.await_up()
        assert "shortlived" in owners_of_revisions(admin, home)
        kinds = {line.partition(" ")[0] for line in state(whole, "node2") - before}
        assert kinds == {"mount", "link", "network", "pod", "record", "process"}, "all of them are to be seen"
    finally:
        vm.remove()
    wait_for("its revisions are gone", lambda: "shortlived" not in owners_of_revisions(admin, home))
    try:
        wait_for("nothing is left on the node", lambda: state(whole, "node2") <= before)
    finally:
        assert state(whole, "node2") - before == set()


def owners_of_revisions(admin: Kubectl, home: str) -> set[str]:
    """Names of the VMs that there are ControllerRevisions of."""
    found = admin.get("controllerrevisions", "-n", home)["items"]
    return {owner["name"] for one in found for owner in one["metadata"]["ownerReferences"]}


def test_nobody_lacks_a_right(whole: Cluster, machines: dict[str, Vm]) -> None:
    """By the API server's audit log."""
    if not whole.plan.audit:
        pytest.skip("the cluster that was named writes no audit log")
    machines["Always"].await_up()
    for account in ("kvnode-agent", "kvnode-controller", "kvnode-webhook"):
        answers = asked(whole, NAMESPACE, account)
        assert answers, account
        assert {right for right, code in answers if code == 403} == set(), account
