"""What tests against a real API server share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

from kvnode.kube.client import Client
from kvnode.kube.config import from_kubeconfig
from kvnode.kube.objects import Object
from tests.cluster.cluster import Cluster
from tests.kube.faults import FaultyServer


@asynccontextmanager
async def client_of(cluster: Cluster, **settings: Any) -> AsyncIterator[Client]:
    """A client of a cluster, as administrator."""
    async with Client(from_kubeconfig(cluster.kubeconfig), **settings) as client:
        yield client


@asynccontextmanager
async def faulty(cluster: Cluster, **settings: Any) -> AsyncIterator[tuple[FaultyServer, Client]]:
    """A proxy before a cluster and a client of it."""
    async with FaultyServer(cluster).running() as server, Client(server.configuration, **settings) as client:
        yield server, client


@asynccontextmanager
async def background(*work: Awaitable[None]) -> AsyncIterator[None]:
    """Run things beside, and end them; a failure of theirs is the test's."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


def config_map(namespace: str, name: str, **data: str) -> Object:
    """A ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def vmi(namespace: str, name: str) -> Object:
    """A small VirtualMachineInstance."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"domain": {"devices": {}, "resources": {"requests": {"memory": "64Mi"}}}},
    }


def vm(namespace: str, name: str) -> Object:
    """A VirtualMachine of such instances."""
    template = {"metadata": {"labels": {"vm": name}}, "spec": vmi(namespace, name)["spec"]}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runStrategy": "Halted", "template": template},
    }
