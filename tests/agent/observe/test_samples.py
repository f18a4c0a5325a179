"""Asking launchers for what they measure: none holds up another, nor whoever wants to know."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from kvnode.agent.domains import DomainStore
from kvnode.agent.ghost import Ghost
from kvnode.agent.observe.samples import LARGEST, SLOW, TOGETHER, Looker, Seen
from kvnode.rpc.errors import RpcError
from tests.agent.build import vmi
from tests.kube.loops import virtual_time


class Launcher:
    """A launcher of which statistics are asked."""

    def __init__(self, number: int) -> None:
        self.ghost = Ghost("default", f"vm-{number}", f"uid-{number}", "/s")
        self.rpc = self
        self.asked = 0
        self.seconds = 0.0
        self.answer: Any = {"Cpu": {"TimeSet": True, "Time": 0}}
        self.files = "[]"

    async def domain_stats(self) -> str | None:
        self.asked += 1
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, str) else json.dumps(self.answer)

    async def filesystems(self) -> str:
        return self.files


class Node:
    """A node with some launchers, each with its VMI."""

    def __init__(self, count: int) -> None:
        self.launchers = [Launcher(number) for number in range(count)]
        self.vmis = [vmi(uid=one.ghost.uid, name=one.ghost.name) for one in self.launchers]
        queue: Any = SimpleNamespace(add=lambda _key: None, forget=lambda _key: None)
        self.domains = DomainStore(queue)
        self.looker = Looker(
            lambda: self.launchers,  # type: ignore[arg-type, return-value]
            SimpleNamespace(objects=lambda: self.vmis),
            self.domains,
            lambda _uid: None,
            asyncio.get_running_loop().time,
        )

    async def look(self, later: float = 2.0) -> dict[str, Seen]:
        """What is seen so many seconds later."""
        await asyncio.sleep(later)
        return {one.key: one for one in await self.looker.look()}


def names(one: Seen) -> list[str]:
    return [metric.name for metric, _, _ in one.samples]


@virtual_time
async def test_vms_by_name_with_what_their_launchers_say() -> None:
    node = Node(3)
    found = await node.look()
    assert list(found) == ["default/vm-0", "default/vm-1", "default/vm-2"]
    assert names(found["default/vm-1"]) == ["cpu_usage_seconds_total"]
    assert found["default/vm-1"].phase == "Running"


@virtual_time
async def test_many_who_ask_make_one_question() -> None:
    node = Node(1)
    await asyncio.gather(*(node.looker.look() for _ in range(50)))
    await node.looker.look()
    assert node.launchers[0].asked == 1
    await node.look()
    assert node.launchers[0].asked == 2


@virtual_time
async def test_one_who_asks_and_goes_leaves_the_answer_to_others() -> None:
    node = Node(1)
    node.launchers[0].seconds = 1.0
    gone = asyncio.ensure_future(node.looker.look())
    other = asyncio.ensure_future(node.looker.look())
    await asyncio.sleep(0.1)
    gone.cancel()
    assert names((await other)[0]) == ["cpu_usage_seconds_total"]


@virtual_time
async def test_a_launcher_that_hangs_is_shown_without_and_not_asked_for_a_while() -> None:
    node = Node(2)
    node.launchers[0].seconds = 3600
    found = await node.look()
    assert [names(one) for one in found.values()] == [[], ["cpu_usage_seconds_total"]]
    began = asyncio.get_running_loop().time()
    await node.look()
    assert asyncio.get_running_loop().time() - began < 3
    assert [one.asked for one in node.launchers] == [1, 2]
    node.launchers[0].seconds = 0
    assert names((await node.look(SLOW))["default/vm-0"]) == ["cpu_usage_seconds_total"]


@virtual_time
async def test_however_many_hang_there_is_an_answer_in_time() -> None:
    node = Node(200)
    for one in node.launchers[:199]:
        one.seconds = 3600
    began = asyncio.get_running_loop().time()
    assert len(await node.look(0)) == 200
    assert asyncio.get_running_loop().time() - began <= TOGETHER
    for _ in range(3):
        found = await node.look()
    assert names(found["default/vm-199"]) == ["cpu_usage_seconds_total"]


@virtual_time
async def test_nonsense_and_refusals_are_nothing_measured() -> None:
    node = Node(1)
    large = json.dumps(node.launchers[0].answer).ljust(LARGEST + 1)
    for answer in ("", "[", "[1]", "null", large, RpcError("GetDomainStats", "no")):
        node.launchers[0].answer = answer
        assert names((await node.look())["default/vm-0"]) == []


@virtual_time
async def test_a_vm_without_a_launcher_is_shown_too() -> None:
    node = Node(1)
    node.vmis.append(vmi("Scheduled", uid="other", name="waits"))
    found = await node.look()
    assert found["default/waits"].phase == "Scheduled"
    assert found["default/waits"].samples == ()


@virtual_time
async def test_file_systems_of_a_guest_whose_agent_answers() -> None:
    node = Node(1)
    node.launchers[0].files = json.dumps([{"diskName": "vda", "totalBytes": 7}])
    assert "filesystem_capacity_bytes" not in names((await node.look())["default/vm-0"])
    channel = {"Target": {"Name": "org.qemu.guest_agent.0", "State": "connected"}}
    raw = {
        "ObjectMeta": {"namespace": "default", "name": "vm-0"},
        "Spec": {"Devices": {"Channels": [channel]}},
    }
    node.domains.heard("ADDED", raw, node.launchers[0].ghost)
    assert "filesystem_capacity_bytes" in names((await node.look())["default/vm-0"])


@virtual_time
async def test_the_load_is_what_was_used_since_the_look_before() -> None:
    node = Node(1)
    cpu = node.launchers[0].answer["Cpu"]
    assert (await node.look())["default/vm-0"].load is None
    cpu["Time"] = 3 * 10**9
    assert (await node.look(6))["default/vm-0"].load == 0.5
    assert (await node.look(1.5))["default/vm-0"].load == 0.5
    cpu["Time"] = 0
    assert (await node.look(6))["default/vm-0"].load is None
