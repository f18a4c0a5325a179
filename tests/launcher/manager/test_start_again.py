"""A Sync that failed because libvirt's daemon died over it is done once more, and no other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.lifecycle import Lifecycle
from kvnode.launcher.manager.manager import Manager
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.virt.connection import Connection
from kvnode.virt.errors import VirtError

VMI = Instance.read(json.dumps({"metadata": {"namespace": "n", "name": "a", "uid": "u"}}).encode())


class Sync:
    """What brings the domain up: it fails when it is told to."""

    def __init__(self) -> None:
        self.fails = True
        self.start_lost = False
        self.done: list[bool] = []

    async def sync(self, *_arguments: Any, may_define: bool) -> None:
        assert may_define
        self.done.append(self.start_lost)
        if self.fails:
            raise VirtError("starting the guest", "end of file")


class Scene:
    """A manager whose guest has not run yet."""

    def __init__(self) -> None:
        self.manager = Manager(Connection("", lambda *_: None, lambda: None), ManagerOptions("n", "a", "u"))
        self.manager.host.has_run = lambda: self.has_run
        self.manager.host.lookup = lambda: None  # type: ignore[method-assign]
        self.has_run = False
        self.sync = Sync()
        self.manager._sync = cast("Any", self.sync)

    async def ask(self) -> None:
        """What the agent asks for."""
        try:
            await self.manager.sync(VMI, None, ())
        except VirtError:
            assert self.sync.fails


def play(scenario: Callable[[Scene], Awaitable[None]]) -> Scene:
    """Play a scenario in an event loop."""

    async def body() -> Scene:
        scene = Scene()
        await scenario(scene)
        await scene.manager.close()
        return scene

    return asyncio.run(body())


def test_a_start_that_was_cut_short_is_made_again() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.ask()
        scene.sync.fails = False
        await scene.manager.start_again()
        await scene.manager.start_again()

    assert play(scenario).sync.done == [False, True]


def test_one_that_fails_again_is_the_next_syncs_matter() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.ask()
        with pytest.raises(VirtError):
            await scene.manager.start_again()
        assert scene.sync.start_lost, "the VMI may be Running by now, and the guest is started all the same"

    play(scenario)


async def delete(scene: Scene) -> None:
    await scene.manager.delete(VMI)


async def kill(scene: Scene) -> None:
    await scene.manager.kill(VMI)


async def shut_down(scene: Scene) -> None:
    await scene.manager.shutdown(VMI)


async def run(scene: Scene) -> None:
    scene.has_run = True


async def succeed(scene: Scene) -> None:
    scene.sync.fails = False
    await scene.ask()
    scene.sync.done.pop()


@pytest.mark.parametrize("meanwhile", [delete, kill, shut_down, run, succeed])
def test_not_a_guest_that_ran_or_is_not_wanted(meanwhile: Callable[[Scene], Awaitable[None]]) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.ask()
        await meanwhile(scene)
        await scene.manager.start_again()

    assert play(scenario).sync.done == [False]


def test_before_any_sync_there_is_nothing_to_do() -> None:
    assert play(lambda scene: scene.manager.start_again()).sync.done == []


@pytest.mark.parametrize("has_run", [True, False])
def test_a_domain_that_never_ran_may_be_deleted_and_defined_anew(has_run: bool) -> None:
    """Agents delete a domain whose start failed, and try again."""

    class Domain:
        def undefineFlags(self, _flags: int) -> None:  # noqa: N802
            return None

    async def scenario(scene: Scene) -> None:
        scene.has_run = has_run
        scene.manager.host.lookup = lambda: cast("Any", Domain())  # type: ignore[method-assign]
        life = Lifecycle(scene.manager.host)
        await life.delete()
        assert life.deleted is has_run

    play(scenario)
