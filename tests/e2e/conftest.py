"""One cluster with agents alone, and one with all of deploy/: in both guests are emulated."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.deploy import Kubectl
from tests.cluster.fixtures import agents, make_namespace, nodes_with_images, two_nodes, whole
from tests.e2e.machine import MANIFESTS, Machine

__all__ = ["agents", "nodes_with_images", "two_nodes", "whole"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that is here needs nodes."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.integration)
            item.add_marker(pytest.mark.skipif(os.geteuid() != 0, reason="nodes need root"))


@pytest.fixture(scope="session")
def kubectl(agents: Cluster) -> Kubectl:
    """kubectl on a cluster whose agents know that guests are emulated."""
    call = Kubectl(agents, lambda _line: None)
    call("apply", "-f", MANIFESTS / "kubevirt.yaml")
    return call


@pytest.fixture(scope="session")
def space(agents: Cluster, kubectl: Kubectl) -> Iterator[str]:
    """A namespace."""
    name = make_namespace(agents)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def new_machine(agents: Cluster, kubectl: Kubectl, space: str) -> Iterator[Machine]:
    """A VM of this test alone, not made yet, for the second node."""
    machine = Machine(agents, kubectl, space, f"vm-{secrets.token_hex(3)}", "node2")
    yield machine
    machine.remove()


@pytest.fixture(scope="session")
def machine(agents: Cluster, kubectl: Kubectl, space: str) -> Iterator[Machine]:
    """A VM on the first node whose guest is up; tests leave it so."""
    made = Machine(agents, kubectl, space, "demo", "node1")
    try:
        made.create()
        made.await_up()
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="session")
def admin(whole: Cluster) -> Kubectl:
    """kubectl on the cluster with all of deploy/."""
    return Kubectl(whole, lambda _line: None)


@pytest.fixture(scope="session")
def home(whole: Cluster) -> str:
    """A namespace in it."""
    return make_namespace(whole)
