"""Machines on claims and DataVolumes, on a real API server; nodes and volumes' controllers are played by the test."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from kvnode.kube.client import PatchType
from kvnode.kube.objects import Object
from kvnode.kube.resources import DATA_VOLUMES, PERSISTENT_VOLUME_CLAIMS
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.controller.test_manager import eventually
from tests.controller.test_rights import await_served, kind_of, path_of
from tests.controller.test_strategies import looked_after
from tests.kube.loops import real_time

pytestmark = pytest.mark.cluster


@pytest.fixture
def data_volumes(control_plane: Cluster) -> Iterator[None]:
    """CDI's kind, without CDI."""
    with cdi_installed(control_plane):
        yield


@contextmanager
def cdi_installed(control_plane: Cluster) -> Iterator[None]:
    definition = kind_of("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
    control_plane.api.apply(definition, path_of(definition))
    try:
        await_served(control_plane, definition)
        yield
    finally:
        control_plane.request("DELETE", path_of(definition))
        # It goes by a finalizer; who makes it again meanwhile changes what is about to go.
        with suppress(ClusterError):
            while control_plane.request("GET", path_of(definition)):
                time.sleep(0.05)


@real_time
async def test_without_cdi_it_is_asked_for(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace) as it:
        await it.make_on_data_volume("dv")
        told = await it.condition("Failure", status="True", reason="FailedCreate")
        assert "install CDI" in told["message"]


def test_cdi_may_come_later(control_plane: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was refused before is made then, and its progress seen."""
    monkeypatch.setattr("kvnode.controller.manager.RECHECK", 0.5)

    @real_time
    async def run() -> None:
        async with looked_after(control_plane, namespace) as it:
            await it.make_on_data_volume("dv")
            await it.condition("Failure", status="True", reason="FailedCreate")
            with cdi_installed(control_plane):
                await eventually(lambda: it.client.get(DATA_VOLUMES, "dv", namespace))
                status = {"status": {"phase": "ImportInProgress"}}
                await it.client.patch(DATA_VOLUMES, "dv", namespace, status, PatchType.MERGE)
                await it.vm("Provisioning")

    run()


@real_time
async def test_a_data_volume_is_made_and_waited_for(
    control_plane: Cluster, namespace: str, data_volumes: None
) -> None:
    async with looked_after(control_plane, namespace) as it:
        vm = await it.make_on_data_volume("dv")
        dv = await eventually(lambda: it.client.get(DATA_VOLUMES, "dv", namespace))
        assert dv["metadata"]["ownerReferences"][0]["uid"] == vm["metadata"]["uid"]
        imported = {"status": {"phase": "ImportInProgress"}}
        await it.client.patch(DATA_VOLUMES, "dv", namespace, imported, PatchType.MERGE)
        await it.vm("Provisioning")
        assert not await it.uid()
        await it.client.patch(DATA_VOLUMES, "dv", namespace, {"status": {"phase": "Failed"}}, PatchType.MERGE)
        await it.vm("DataVolumeError")
        owner = {**dv["metadata"]["ownerReferences"][0], "kind": "DataVolume", "name": "dv"}
        owner |= {"uid": dv["metadata"]["uid"], "apiVersion": "cdi.kubevirt.io/v1beta1"}
        await it.client.create(PERSISTENT_VOLUME_CLAIMS, claim(namespace, "dv", ownerReferences=[owner]))
        await it.bind("dv")
        await it.client.patch(
            DATA_VOLUMES, "dv", namespace, {"status": {"phase": "Succeeded"}}, PatchType.MERGE
        )
        await it.runs()


def claim(namespace: str, name: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


@real_time
async def test_a_claim_is_waited_for(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace) as it:
        await it.make("Always", volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}])
        await it.vm("ErrorPvcNotFound")
        told = await it.condition("Synchronized", status="False", reason="FailedPvcNotFound")
        assert f"{namespace}/root" in told["message"]
        assert await it.pod() is None
        await it.client.create(PERSISTENT_VOLUME_CLAIMS, claim(namespace, "root"))
        await it.bind("root")
        await it.runs()
