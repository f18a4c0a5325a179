"""However the watches lie and lag, a VMI has one pod."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import random
from typing import Any

import pytest

from kvnode.controller import indices
from kvnode.controller.freshness import FreshApi
from kvnode.controller.ports import Caches, World
from kvnode.controller.vmi import VirtualMachineInstanceController
from kvnode.controller.wiring import InstanceHandlers
from kvnode.kube.errors import ConnectionFailed
from kvnode.kube.informer import Informer
from kvnode.kube.objects import Object
from kvnode.kube.queue import WorkQueue
from kvnode.kube.resources import PODS, VIRTUAL_MACHINE_INSTANCES, Resource
from kvnode.kube.store import Store
from kvnode.kube.watch import Event
from tests.controller.objects import vmi
from tests.reports import report

KEY = "default/testvm"
STEPS = 8


class Server:
    """The API server's truth, as far as a VMI and its pods go."""

    def __init__(self, source: random.Random) -> None:
        self.version = 10
        self.vmi = self._stamped(vmi("Pending"))
        self.pods: list[Object] = []
        self._random = source

    def _stamped(self, obj: Object) -> Object:
        self.version += 1
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(self.version)
        return obj

    async def create(self, resource: Resource, obj: Object) -> Object:
        """Make a pod; now and then the answer is lost."""
        assert resource is PODS
        number = len(self.pods)
        named = {**obj["metadata"], "name": f"pod-{number}", "uid": f"pod-{number}"}
        made = self._stamped({**obj, "metadata": named, "status": {"phase": "Pending"}})
        self.pods.append(made)
        if self._random.random() < 0.2:
            raise ConnectionFailed("the connection broke")
        return copy.deepcopy(made)

    async def replace(self, resource: Resource, obj: Object, **_: Any) -> Object:
        """Write the VMI."""
        assert resource is VIRTUAL_MACHINE_INSTANCES
        self.vmi = self._stamped(obj)
        return copy.deepcopy(self.vmi)

    async def patch(self, _: Resource, name: str, *__: Any, **___: Any) -> Object:
        """A pod stays as it is."""
        return copy.deepcopy(next(one for one in self.pods if one["metadata"]["name"] == name))


class Nothing:
    """Events go nowhere."""

    def record(self, obj: Object, kind: str, reason: str, message: str) -> None:
        """See `kvnode.controller.ports.Recorder`."""


class Scene:
    """The VMI controller behind watches that the test tells."""

    def __init__(self, source: random.Random) -> None:
        self.server = Server(source)
        self.vmis = Informer(None, VIRTUAL_MACHINE_INSTANCES, indexers=indices.INSTANCES)  # type: ignore[arg-type]
        self.pods = Informer(None, PODS, indexers=indices.PODS)  # type: ignore[arg-type]
        told = {"virtualmachineinstances": self.vmis, "pods": self.pods}
        for informer in told.values():
            informer.begin("10")
            informer.complete("10")
            informer.reflector.synced.set()

        def observe(resource: Resource, obj: Object) -> None:
            told[resource.plural].observe(obj)

        caches = Caches(
            Store(indices.MACHINES),
            self.vmis.store,
            self.pods.store,
            *(
                Store(one)
                for one in (indices.REVISIONS, indices.CLAIMS, None, indices.MIGRATIONS, None, None)
            ),
            *(Store(one) for one in (indices.QUOTAS, None)),
        )
        api: Any = FreshApi(self.server, observe=observe)  # type: ignore[arg-type]
        world = World(api, caches, Nothing(), WorkQueue("test"))
        self.controller = VirtualMachineInstanceController(world)
        handlers = InstanceHandlers(self.controller, self.vmis.store, lambda _: None)
        self.vmis.add_handler(handlers.on_vmi)
        self.pods.add_handler(handlers.on_pod)
        self.told = 0

    def tell_pod(self) -> None:
        """The pods' watch tells of one more."""
        if self.told < len(self.server.pods):
            self.pods.happened(Event("ADDED", copy.deepcopy(self.server.pods[self.told])))
            self.told += 1

    def tell_vmi(self) -> None:
        """The VMIs are listed anew."""
        self.vmis.begin(str(self.server.version))
        self.vmis.listed(copy.deepcopy(self.server.vmi))
        self.vmis.complete(str(self.server.version))

    def lose_vmi(self) -> None:
        """A deletion is told that never was."""
        self.vmis.happened(Event("DELETED", copy.deepcopy(self.server.vmi)))

    async def look(self) -> None:
        """A pass of the controller, which may fail."""
        with contextlib.suppress(ConnectionFailed):
            await self.controller.reconcile(KEY)


@report("B53")
@pytest.mark.parametrize("part", range(5))
def test_a_deletion_that_never_was_makes_no_second_pod(part: int) -> None:
    async def play(seed: int) -> None:
        source = random.Random(seed)  # noqa: S311
        scene = Scene(source)
        scene.tell_vmi()
        for _ in range(STEPS):
            step = source.choice(["look", "look", "tell_pod", "tell_vmi", "lose_vmi"])
            if step == "look":
                await scene.look()
            else:
                getattr(scene, step)()
        scene.tell_vmi()
        for _ in range(3):
            await scene.look()
            scene.tell_pod()
        assert len(scene.server.pods) == 1, f"seed {seed}"

    async def play_all() -> None:
        for seed in range(part * 200, part * 200 + 200):
            await play(seed)

    asyncio.run(play_all())
