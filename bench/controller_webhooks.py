"""``kvnode webhook`` before the API server, as a process of its own, and accounts that it knows."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kvnode.kube.client import Client
from kvnode.kube.objects import Object
from tests.cluster.cluster import Cluster
from tests.webhook.test_cluster import answering, register, uninstall

CONTROLLER = "kvnode-controller"
STANDIN = "standin"
_ADMINISTRATOR = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}


def account(cluster: Cluster, namespace: str, name: str) -> Path:
    """Make a service account that may do anything; the answer is a kubeconfig of its."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    meta = {"name": name}
    cluster.request("POST", accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    binding: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{namespace}-{name}"},
        "roleRef": _ADMINISTRATOR,
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    cluster.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.request("POST", f"{accounts}/{name}/token", asked)["status"]["token"]
    server = {
        "server": cluster.server,
        "certificate-authority-data": base64.b64encode(cluster.ca.read_bytes()).decode(),
    }
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": namespace}}],
        "clusters": [{"name": "it", "cluster": server}],
        "users": [{"name": "it", "user": {"token": token}}],
    }
    path = cluster.plan.root / f"{name}.kubeconfig"
    path.write_text(json.dumps(config))
    return path


@asynccontextmanager
async def webhooks(cluster: Cluster, namespace: str, user: Client) -> AsyncIterator[None]:
    """The webhooks, answering; they know the accounts of this module."""
    command = [sys.executable, "-m", "kvnode.cli", "webhook", "--kubeconfig", str(cluster.kubeconfig)]
    command += ["--namespace", namespace, "--host", "127.0.0.1", "--name", "127.0.0.1", "--port", "0"]
    for name in (CONTROLLER, STANDIN):
        command += ["--account", f"{namespace}/{name}"]
    command += ["--agent-account", f"{namespace}/none"]
    log = cluster.plan.root / "webhook.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, start_new_session=True)
    try:
        register(cluster, namespace, _port(log))
        await answering(user, namespace)
        yield
    finally:
        process.terminate()
        process.wait()
        uninstall(cluster)


def _port(log: Path, seconds: float = 60.0) -> int:
    """Wait until it listens; the answer is where."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := re.search(r"listening on \S+ port (\d+) ", log.read_text()):
            return int(found[1])
        time.sleep(0.05)
    raise TimeoutError(f"kvnode webhook does not listen: {log.read_text()}")
