"""Controllers and nodes that die under VMs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.deploy import NAMESPACE, Kubectl
from tests.cluster.fixtures import SPARE_TAINT
from tests.e2e.machine import wait_for
from tests.e2e.vm import Vm


def leader(admin: Kubectl) -> str:
    """Who holds the controllers' Lease: the name of its pod, ``_`` and what makes it unique."""
    return str(admin.get("lease", "-n", NAMESPACE, "virt-controller")["spec"]["holderIdentity"])


def kill_pod(cluster: Cluster, admin: Kubectl, name: str) -> None:
    """Kill the process of a pod of kvnode, without a word to it."""
    node = admin.get("pod", "-n", NAMESPACE, name)["spec"]["nodeName"]
    kill = f"kill -9 $(grep -laz '^HOSTNAME={name}$' /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3)"
    cluster.run_on(node, "sh", "-c", kill)


@pytest.fixture
def vm(whole: Cluster, admin: Kubectl, home: str, request: pytest.FixtureRequest) -> Iterator[Vm]:
    """A VM of run strategy Always, not made yet."""
    made = Vm(whole, admin, home, request.param, "Always")
    yield made
    made.remove()


@pytest.mark.parametrize("vm", ["orphan"], indirect=True)
def test_a_leader_that_dies_over_a_start_is_followed_by_another(
    whole: Cluster, admin: Kubectl, vm: Vm
) -> None:
    before = leader(admin)
    vm.apply()
    wait_for("a VMI", vm.uid)
    kill_pod(whole, admin, before.partition("_")[0])
    uid = vm.uid()
    assert vm.phase() != "Running", "the leader was to die before"
    assert vm.await_up() == uid, "no VMI was made twice"
    wait_for("it is Ready", lambda: vm.vm()["status"].get("ready"))
    assert leader(admin) != before
    assert len(vm.pods()) == 1


def prefer_spare(spec: dict[str, Any], node: str) -> None:
    """Let a VM run on the spare node, and start there if it can."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    rule = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
    spec["affinity"] = {"nodeAffinity": rule}
    spec["tolerations"] = [{"key": SPARE_TAINT, "operator": "Exists"}]


@pytest.mark.parametrize("vm", ["survivor"], indirect=True)
def test_a_machine_of_a_node_that_crashed_is_started_elsewhere(
    whole: Cluster, admin: Kubectl, vm: Vm
) -> None:
    """Once the node is known to be off, and not before: its guest could live."""
    spare = whole.plan.node_names[-1]
    if whole.plan.nodes < 3:
        pytest.skip("the cluster that was named has no node to spare")
    vm.apply(lambda spec: prefer_spare(spec, spare))
    before = vm.await_up()
    assert vm.node() == spare
    whole.crash_node(spare)

    def lost() -> bool:
        conditions = {one["type"]: one["status"] for one in admin.get("node", spare)["status"]["conditions"]}
        return bool(conditions["Ready"] == "Unknown")

    wait_for(f"{spare} is missed", lost)
    wait_for("its VM is not Ready", lambda: not vm.vm()["status"].get("ready"))
    assert vm.uid() == before
    assert len(vm.pods()) == 1
    admin("taint", "node", spare, "node.kubernetes.io/out-of-service=crashed:NoExecute")
    vm.await_up(after=before)
    assert vm.node() != spare
