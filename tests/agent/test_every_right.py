"""deploy/agent on a real API server that writes down what it is asked: all that is granted is used, and no more."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
import yaml

from kvnode.kube.client import PatchType
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES
from tests.agent.lab import called, lab, until
from tests.agent.node import CONFIGURATION
from tests.agent.test_beats import CAPABILITIES, DOMAIN_CAPABILITIES
from tests.agent.test_rights import DEPLOY, apply, as_account
from tests.cluster import audit
from tests.cluster.audit import Right
from tests.cluster.cluster import Cluster, up
from tests.cluster.fixtures import make_namespace
from tests.kube.loops import minutes

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="launchers have roots of their own"),
]


@pytest.fixture
def audited() -> Iterator[Cluster]:
    """A cluster of its own with an audit log."""
    cluster = up(lambda line: print(line, file=sys.stderr), audit=True)
    try:
        apply(cluster)
        path = "/apis/kubevirt.io/v1/namespaces/default/kubevirts"
        about = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"}}
        cluster.request("POST", path, {**about, "spec": {"configuration": CONFIGURATION}})
        yield cluster
    finally:
        cluster.down()


def granted() -> set[Right]:
    documents = yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text())
    return {
        (group, resource, verb)
        for document in documents
        for rule in document.get("rules") or ()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(cluster: Cluster) -> list[tuple[Right, int]]:
    """What the account asked for, and the answers' codes."""
    return audit.asked(cluster, "kvnode", "kvnode-agent")


@minutes(5)
async def test_every_right_is_used_and_no_other_is_asked_for(audited: Cluster) -> None:
    namespace = make_namespace(audited)
    async with lab(audited, namespace) as node:
        folder = node.settings.capabilities
        folder.mkdir()
        (folder / "capabilities.xml").write_text(CAPABILITIES)
        (folder / "virsh_domcapabilities.xml").write_text(DOMAIN_CAPABILITIES)
        (folder / "supported_features.xml").write_text("<cpu/>")
        async with node.agent(as_account(audited)):
            remote = await node.run()
            # Its label goes: whether the VMI is there has to be asked.
            patch = {"metadata": {"labels": {"kubevirt.io/nodeName": None}}}
            await node.client.patch(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace, patch, PatchType.MERGE)
            # The same twice is one event that is counted.
            for _ in range(2):
                await remote.do("tell_event")
            await until(lambda: ("", "events", "patch") in {right for right, _ in asked(audited)}, 120)
            await node.remove()
            await called(remote, "kill")
            await until(lambda: granted() <= {right for right, _ in asked(audited)}, 120)
    found = asked(audited)
    assert not {right for right, code in found if code == 403}
    assert {right for right, _ in found} <= granted()
    assert granted() - {right for right, _ in found} == set()
