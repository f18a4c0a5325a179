"""Changes of a machine that runs, with the webhooks in a real API server: what a VMI takes, its controller writes."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.controller.manager import Manager
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from tests.cluster.cluster import Cluster
from tests.controller.standin import StandIn
from tests.controller.test_manager import Played, eventually
from tests.kube.loops import minutes
from tests.kube.support import background
from tests.webhook.ask import vm
from tests.webhook.test_cluster import Installed, in_namespace, installed

pytestmark = pytest.mark.cluster

TEMPLATE = "/spec/template/spec"


async def change(it: Installed, path: str, value: Any) -> None:
    patch = [{"op": "add", "path": f"{TEMPLATE}{path}", "value": value}]
    await it.user.patch(VIRTUAL_MACHINES, "testvm", it.namespace, patch)


async def follows(it: Installed, uid: str, *path: str, value: Any) -> None:
    """Wait until the same VMI has it."""

    async def check() -> bool:
        found: Any = await it.user.get(VIRTUAL_MACHINE_INSTANCES, "testvm", it.namespace)
        assert found["metadata"]["uid"] == uid
        for name in ("spec", *path):
            found = found.get(name) or {}
        return bool(found == value)

    await eventually(check)


@minutes(3)
async def test_a_running_machine_takes_what_it_can(control_plane: Cluster, namespace: str) -> None:
    async with (
        installed(control_plane, namespace) as it,
        background(
            Manager(it.controller, namespace=namespace).run(), StandIn(it.controller, namespace).run()
        ),
    ):
        played = Played(it.user, namespace, "testvm")
        made = in_namespace(vm(), namespace)
        made["spec"]["template"]["spec"]["domain"]["cpu"] = {"sockets": 1}
        await it.user.create(VIRTUAL_MACHINES, made)
        await played.vm("Running", ready=True)
        uid = (await played.vmi("Running"))["metadata"]["uid"]

        await change(it, "/domain/cpu", {"sockets": 2})
        await follows(it, uid, "domain", "cpu", "sockets", value=2)
        await change(it, "/nodeSelector", {"zone": "a"})
        await follows(it, uid, "nodeSelector", value={"zone": "a"})
        with pytest.raises(ApiError, match=r"spec\.template\.spec\.domain\.cpu\.sockets"):
            await change(it, "/domain/cpu", {"sockets": 2, "maxSockets": 1})

        await change(it, "/hostname", "other")

        async def told() -> Object | None:
            found = await it.user.get(VIRTUAL_MACHINES, "testvm", namespace)
            held = {one["type"]: one for one in found["status"]["conditions"]}
            return held.get("RestartRequired")

        assert (await eventually(told))["status"] == "True"
        running = await played.vmi("Running")
        assert running["metadata"]["uid"] == uid
        assert running["spec"].get("hostname") != "other"
