"""pytest fixtures: import them into a conftest.py."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster, find, up
from tests.cluster.deploy import Kubectl, deploy_agent, deploy_all, load_images
from tests.cluster.errors import ClusterError

SHARED = "KVNODE_TEST_CLUSTER"
SHARED_WHOLE = "KVNODE_TEST_WHOLE_CLUSTER"
SPARE_TAINT = "kvnode.test/spare"


def _say(line: str) -> None:
    print(f"cluster: {line}", file=sys.stderr, flush=True)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Cluster]:
    """A real API server with the project's definitions, on loopback, of this run alone."""
    cluster = up(_say)
    yield cluster
    cluster.down()


@pytest.fixture(scope="session")
def two_nodes() -> Iterator[Cluster]:
    """A whole cluster of two nodes, of this run alone; needs root.

    Where KVNODE_TEST_CLUSTER names one that is up, that one is taken, and left up: for work on tests.
    """
    if name := os.environ.get(SHARED):
        yield find(name)
        return
    cluster = up(_say, nodes=2)
    yield cluster
    cluster.down()


@pytest.fixture(scope="session")
def nodes_with_images(two_nodes: Cluster) -> Cluster:
    """The cluster of two nodes, each with the images kvnode/launcher, agent, controller, webhook and demo-guest."""
    load_images(two_nodes, _say)
    return two_nodes


@pytest.fixture(scope="session")
def agents(nodes_with_images: Cluster) -> Cluster:
    """The same with deploy/agent applied, and an agent ready on each node."""
    deploy_agent(nodes_with_images, _say)
    return nodes_with_images


@pytest.fixture(scope="session")
def whole() -> Iterator[Cluster]:
    """A cluster with all of deploy/ and an audit log; needs root.

    Of its three nodes the last is a spare one, to be crashed: it takes only pods that tolerate SPARE_TAINT. Where
    KVNODE_TEST_WHOLE_CLUSTER names a cluster that has all that already, it is taken, and left up.
    """
    if name := os.environ.get(SHARED_WHOLE):
        yield find(name)
        return
    cluster = up(_say, nodes=3, audit=True)
    try:
        Kubectl(cluster, _say)("taint", "node", cluster.plan.node_names[-1], f"{SPARE_TAINT}=:NoSchedule")
        load_images(cluster, _say)
        deploy_all(cluster, _say)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def namespace(control_plane: Cluster) -> str:
    """A fresh namespace with a service account that pods run as; no controller manager will make it one."""
    return make_namespace(control_plane)


def make_namespace(cluster: Cluster, name: str = "") -> str:
    """Make a namespace (with a name of its own if none is given) and see that pods can be made in it."""
    name = name or f"test-{secrets.token_hex(4)}"
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        account = {"metadata": {"name": "default"}}
        cluster.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    except ClusterError as error:
        if "409" not in str(error):  # a controller manager was quicker
            raise
    return name
