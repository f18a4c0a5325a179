"""What the launcher makes of a domain's events, and of those that it missed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt
import pytest

from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.launcher.pod.settings import Subject
from kvnode.launcher.pod.watcher import Watcher
from tests.reports import report

SUBJECT = Subject("ns", "vm", "uid-1")
XML = "<domain type='qemu'><name>ns_vm</name><uuid>79efb850-937e-4a34-9c96-4d42bd189e64</uuid></domain>"
LIFECYCLE = libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE
DEFINED = (libvirt.VIR_DOMAIN_EVENT_DEFINED, libvirt.VIR_DOMAIN_EVENT_DEFINED_ADDED)
UNDEFINED = (libvirt.VIR_DOMAIN_EVENT_UNDEFINED, libvirt.VIR_DOMAIN_EVENT_UNDEFINED_REMOVED)
STARTED = (libvirt.VIR_DOMAIN_EVENT_STARTED, libvirt.VIR_DOMAIN_EVENT_STARTED_BOOTED)
STOPPED = (libvirt.VIR_DOMAIN_EVENT_STOPPED, libvirt.VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN)
RUNNING = (libvirt.VIR_DOMAIN_RUNNING, libvirt.VIR_DOMAIN_RUNNING_BOOTED)
STARTING = (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP)
NEW = (libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_UNKNOWN)
FAILED = (libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_FAILED)
OFF = (libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_SHUTDOWN)
DAEMON = (libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_DAEMON)
CRASHED = (libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_CRASHED)


class NoDomain(libvirt.libvirtError):
    """libvirt's error for a domain that is not there."""

    def __init__(self) -> None:
        Exception.__init__(self, "no domain")

    def get_error_code(self) -> int:
        return int(libvirt.VIR_ERR_NO_DOMAIN)


@dataclass
class FakeLink:
    """A connection to a libvirt with at most one domain; its own ``raw``, and its domain's object."""

    state_now: tuple[int, int] | None = None
    callbacks: dict[int, Callable[..., None]] = field(default_factory=dict)
    reconnected: list[Callable[[], None]] = field(default_factory=list)

    @property
    def raw(self) -> FakeLink:
        return self

    def on_event(self, event: int, callback: Callable[..., None]) -> None:
        self.callbacks[event] = callback

    def on_reconnected(self, callback: Callable[[], None]) -> None:
        self.reconnected.append(callback)

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def lookupByName(self, _name: str) -> FakeLink:  # noqa: N802
        if self.state_now is None:
            raise NoDomain
        return self

    def state(self) -> tuple[int, int]:
        assert self.state_now is not None
        return self.state_now

    def XMLDesc(self, _flags: int) -> str:  # noqa: N802
        return XML


@dataclass
class FakeNotifier:
    """Keeps what the agent would be told: the event's type, state and reason, and whether it is final."""

    told: list[tuple[str, str, str, bool]] = field(default_factory=list)

    def domain_event(self, kind: str, domain: str, *, final: bool = False) -> None:
        status = json.loads(domain)["Status"]
        self.told.append((kind, status["Status"], status["Reason"], final))


class Scene:
    """A watcher of a libvirt that the test plays."""

    def __init__(self) -> None:
        self.link, self.notifier = FakeLink(), FakeNotifier()
        self.watcher = Watcher(
            self.link,  # type: ignore[arg-type]
            self.notifier,  # type: ignore[arg-type]
            SUBJECT,
            metadata=MetadataCache(),
            store=AgentStore(),
            qemu_log=Path("/nonexistent"),
        )
        self.watcher.register()
        self.watcher.start()

    async def happens(self, event: tuple[int, int], state: tuple[int, int] | None) -> None:
        """The domain comes into a state, and libvirt tells of it."""
        self.link.state_now = state
        self.link.callbacks[LIFECYCLE](SUBJECT.domain, *event)
        await settle()

    async def reconnects(self, state: tuple[int, int] | None) -> None:
        """The daemon is back, with the domain in a state of which no event told."""
        self.link.state_now = state
        for callback in self.link.reconnected:
            callback()
        await settle()


async def settle() -> None:
    """Let the watcher come to its end: nothing that it waits for takes any time here."""
    for _ in range(100):
        await asyncio.sleep(0)


def play(scenario: Callable[[Scene], Awaitable[None]]) -> None:
    """Play a scenario in an event loop."""

    async def body() -> None:
        scene = Scene()
        await scenario(scene)
        await scene.watcher.stop()

    asyncio.run(body())


def test_a_life() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.happens(DEFINED, NEW)
        assert scene.watcher.defined.is_set()
        await scene.happens(STARTED, RUNNING)
        assert not scene.watcher.ended
        await scene.happens(STOPPED, OFF)
        assert scene.watcher.ended
        await scene.happens(UNDEFINED, None)
        assert scene.watcher.ended
        assert scene.notifier.told == [
            ("ADDED", "Shutoff", "Unknown", False),
            ("MODIFIED", "Running", "Unknown", False),
            ("MODIFIED", "Shutoff", "Shutdown", False),
            ("MODIFIED", "NoState", "NonExistent", True),
        ]

    play(scenario)


def test_a_definition_that_is_taken_back_is_no_end() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.happens(DEFINED, NEW)
        await scene.happens(UNDEFINED, None)
        assert not scene.watcher.ended, "the agent tries again"
        await scene.happens(DEFINED, NEW)
        await scene.happens(STARTED, RUNNING)
        await scene.happens(UNDEFINED, None)
        assert scene.watcher.ended

    play(scenario)


@pytest.mark.parametrize("state", [FAILED, NEW])
def test_a_guest_that_cannot_be_started_is_no_end(state: tuple[int, int]) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.happens(DEFINED, NEW)
        await scene.reconnects(state)
        assert not scene.watcher.ended

    play(scenario)


def test_a_life_too_short_to_be_read_while_it_ran_has_an_end() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.happens(DEFINED, NEW)
        await scene.happens(STARTED, None)
        assert scene.watcher.ended

    play(scenario)


@report("B46")
@pytest.mark.parametrize(
    ("state", "told", "ended"),
    [
        (RUNNING, ("MODIFIED", "Running", "Unknown", False), False),
        (DAEMON, ("MODIFIED", "Shutoff", "Failed", False), False),
        (OFF, ("MODIFIED", "Shutoff", "Shutdown", False), True),
    ],
)
def test_a_domain_whose_events_were_all_missed_is_told_after_a_new_connection(
    state: tuple[int, int], told: tuple[str, str, str, bool], ended: bool
) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.reconnects(state)
        assert scene.notifier.told == [told]
        assert scene.watcher.defined.is_set()
        assert scene.watcher.ended is ended

    play(scenario)


@report("B46")
def test_qemu_that_died_without_its_daemon_is_told_as_a_crash() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.happens(STARTED, RUNNING)
        await scene.reconnects(DAEMON)
        assert scene.notifier.told[-1] == ("MODIFIED", "Shutoff", "Crashed", False)
        assert scene.watcher.ended

    play(scenario)


def test_a_start_that_its_daemon_did_not_live_to_finish_is_neither_told_nor_an_end() -> None:
    """An agent that hears of a paused guest makes its VMI Running, and asks for no start any more."""

    async def scenario(scene: Scene) -> None:
        await scene.happens(DEFINED, NEW)
        await scene.reconnects(STARTING)
        assert scene.notifier.told == [("ADDED", "Shutoff", "Unknown", False)]
        assert not scene.watcher.has_run
        scene.watcher.holds_back = lambda: True
        await scene.reconnects(DAEMON)
        assert len(scene.notifier.told) == 1, "an agent deletes a domain that it hears is off"
        scene.watcher.holds_back = lambda: False
        await scene.reconnects(DAEMON)
        assert not scene.watcher.ended
        assert scene.notifier.told[-1][:3] == ("MODIFIED", "Shutoff", "Failed")

    play(scenario)


def test_what_is_left_of_a_lost_start_is_no_crash_until_that_is_known() -> None:
    """libvirt calls it crashed when QEMU's monitor was there already; an agent that hears so fails the VM for good."""

    async def scenario(scene: Scene) -> None:
        await scene.happens(DEFINED, NEW)
        scene.watcher.holds_back = lambda: True
        await scene.reconnects(CRASHED)
        await scene.happens(STOPPED, CRASHED)
        assert scene.notifier.told == [("ADDED", "Shutoff", "Unknown", False)]
        assert not scene.watcher.has_run
        scene.watcher.holds_back = lambda: False
        await scene.reconnects(CRASHED)
        assert scene.notifier.told[-1] == ("MODIFIED", "Shutoff", "Crashed", False)
        assert scene.watcher.ended

    play(scenario)


def test_a_crash_is_told_at_once_of_a_guest_that_ran() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.happens(STARTED, RUNNING)
        scene.watcher.holds_back = lambda: True
        await scene.reconnects(CRASHED)
        assert scene.notifier.told[-1] == ("MODIFIED", "Shutoff", "Crashed", False)

    play(scenario)


def test_nothing_is_told_of_a_domain_that_never_was() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.reconnects(None)
        scene.watcher.look()
        await settle()
        assert scene.notifier.told == []
        assert not scene.watcher.defined.is_set()

    play(scenario)
