"""An agent that offers host devices while the cluster's configuration permits them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kvnode.kube.client import PatchType
from kvnode.kube.resources import KUBEVIRTS
from tests.agent.kubelet import Watch
from tests.agent.machinery import Machine
from tests.agent.node import configuration, folder, node_of
from tests.cluster.cluster import Cluster
from tests.kube.loops import real_time, until

__all__ = ["configuration", "folder"]

pytestmark = pytest.mark.cluster

GPU = "nvidia.com/TU104GL"
PERMITTED = {"pciHostDevices": [{"pciVendorSelector": "10DE:1EB8", "resourceName": GPU}]}


@real_time
async def test_a_gpu_comes_and_goes_with_the_configuration(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    machine = Machine(folder / "m")
    machine.pci("0000:65:00.0", "10DE:1EB8", "45")
    async with node_of(control_plane, namespace, folder) as node:
        node.settings = replace(node.settings, devices=machine.devices, sysfs=machine.sysfs)

        async def permit(what: object) -> None:
            patch = {"spec": {"configuration": {"permittedHostDevices": what}}}
            await node.client.patch(KUBEVIRTS, "kubevirt", "default", patch, PatchType.MERGE)

        async with node.agent() as agent:
            await until(lambda: "devices.kubevirt.io/sev" in agent.plugins.permitted)
            assert GPU not in agent.plugins.permitted
            try:
                await permit(PERMITTED)
                watch = Watch(await node.kubelet.until(GPU))
                assert await watch.next() == [("45", "Healthy")]
            finally:
                await permit(None)
            assert await watch.next() == []
            await watch.close()
            await until(lambda: GPU not in agent.plugins.permitted)
