"""deploy/agent on a real API server: what it grants is enough for a VM's life, and no write is refused."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvnode.kube.client import Client, PatchType
from kvnode.kube.config import Configuration, from_kubeconfig
from kvnode.kube.credentials import StaticToken
from kvnode.kube.resources import NODES, VIRTUAL_MACHINE_INSTANCES
from tests.agent.node import configuration, eventually, folder, node_of
from tests.cluster.cluster import Cluster
from tests.kube.loops import real_time

__all__ = ["configuration", "folder"]

pytestmark = pytest.mark.cluster

DEPLOY = Path(__file__).parents[2] / "deploy/agent"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/kvnode/serviceaccounts/",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles/",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/",
    "DaemonSet": "/apis/apps/v1/namespaces/kvnode/daemonsets/",
}
APPLY = "?fieldManager=test&force=true"
YAML = "application/apply-patch+yaml"


def apply(cluster: Cluster) -> None:
    cluster.request("PATCH", f"/api/v1/namespaces/kvnode{APPLY}", NAMESPACE, YAML)
    for file in sorted(DEPLOY.glob("*.yaml"), reverse=True):
        for document in yaml.safe_load_all(file.read_text()):
            path = PATHS[document["kind"]] + document["metadata"]["name"]
            cluster.request("PATCH", path + APPLY, document, YAML)


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kvnode"}}


def as_account(cluster: Cluster) -> Configuration:
    """The agent's own account."""
    path = f"{PATHS['ServiceAccount']}kvnode-agent/token"
    answer: Any = cluster.request("POST", path, {"spec": {"expirationSeconds": 3600}})
    admin = from_kubeconfig(cluster.kubeconfig)
    return Configuration(admin.server, ca=admin.ca, credential=StaticToken(answer["status"]["token"]))


@real_time
async def test_the_rights_are_enough(
    control_plane: Cluster, namespace: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    apply(control_plane)
    caplog.set_level(logging.INFO)
    async with node_of(control_plane, namespace, folder) as node, Client(as_account(control_plane)) as client:
        admin, node.client = node.client, client
        async with node.agent():
            node.client = admin
            _, launcher = await node.vmi()
            await launcher.start()
            await eventually(lambda: asyncio.sleep(0, "sync" in launcher.calls))
            await launcher.become("Running", "Unknown")
            await node.until("Running")

            async def told() -> bool:
                return ("Started", "Normal") in await node.events()

            await eventually(told)

            async def beaten() -> bool:
                found = (await admin.get(NODES, node.name))["metadata"]
                return "kubevirt.io/schedulable" in (found.get("labels") or {})

            await eventually(beaten)
            patch = {"metadata": {"finalizers": []}}
            await admin.patch(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace, patch, PatchType.MERGE)
            await admin.delete(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace)
            await eventually(lambda: asyncio.sleep(0, "kill" in launcher.calls))
    assert "orbidden" not in caplog.text
