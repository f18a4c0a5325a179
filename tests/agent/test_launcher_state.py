"""Sockets of launchers, and whether they can be expected to answer."""

from __future__ import annotations

import shutil
import socket
from datetime import timedelta
from pathlib import Path

import pytest

from kvnode.agent.errors import AgentError
from kvnode.agent.parts import LauncherState
from kvnode.agent.sockets import Sockets, is_unresponsive, mark_unresponsive
from kvnode.agent.watchdog import LauncherStates, Watchdog
from tests.agent.build import NOW, vmi


class Node:
    """A node's folder of pods, short enough for sockets."""

    def __init__(self, root: Path):
        self.root = root
        self.leaving: set[str] = set()
        self.owners: dict[str, str] = {}
        self.now = NOW
        self.alive = False
        self.sockets = Sockets(root, "node01", self)
        self.states = LauncherStates(self.sockets, lambda: self.now, lambda _vmi: self.alive)

    def is_leaving(self, uid):
        return uid in self.leaving

    def owner(self, uid):
        return self.owners.get(uid, "")

    def listen(self, pod: str) -> Path:
        folder = self.sockets.folder_of(pod)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "launcher-sock"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
        return path


@pytest.fixture
def node(tmp_path_factory) -> Node:
    return Node(tmp_path_factory.mktemp("p"))


TWO = vmi(status={"activePods": {"p1": "node01", "p2": "node01", "p3": "other"}})


class TestFind:
    def test_one(self, node):
        path = node.listen("p1")
        node.listen("p3")
        assert node.sockets.find(TWO) == path

    def test_none(self, node):
        assert node.sockets.find(TWO) is None

    def test_of_two_the_one_that_stays(self, node):
        node.listen("p1")
        path = node.listen("p2")
        node.leaving = {"p1"}
        assert node.sockets.find(TWO) == path

    @pytest.mark.parametrize("other", ["", "uid-of-another"])
    def test_of_two_that_stay_the_one_that_is_the_vms(self, node, other):
        node.listen("p1")
        path = node.listen("p2")
        node.owners = {"p1": other, "p2": "uid-1"}
        assert node.sockets.find(TWO) == path
        node.leaving = {"p2"}
        if other:
            with pytest.raises(AgentError, match="p1, p2"):
                node.sockets.find(TWO)

    def test_a_pod_of_nobodys_comes_before_another_vms(self, node):
        path = node.listen("p1")
        node.listen("p2")
        node.owners = {"p2": "uid-of-another"}
        assert node.sockets.find(TWO) == path

    def test_two_that_stay_are_told_of(self, node):
        node.listen("p1")
        node.listen("p2")
        with pytest.raises(AgentError, match="p1, p2"):
            node.sockets.find(TWO)

    def test_a_link_is_no_socket(self, node):
        path = node.listen("p3")
        folder = node.sockets.folder_of("p1")
        folder.mkdir(parents=True)
        (folder / "launcher-sock").symlink_to(path)
        assert node.sockets.find(TWO) is None

    @pytest.mark.parametrize("uid", ["..", "../p1", "", "a\0"])
    def test_a_pods_uid_leads_nowhere_else(self, node, uid):
        with pytest.raises(AgentError, match="activePods"):
            node.sockets.find(vmi(status={"activePods": {uid: "node01"}}))


class TestState:
    ONE = vmi(status={"activePods": {"p1": "node01"}})

    def test_without_a_pod_there_is_nobody(self, node):
        assert node.states.state(self.ONE) is LauncherState.UNRESPONSIVE

    def test_a_young_pod_is_waited_for(self, node):
        node.sockets.folder_of("p1").mkdir(parents=True)
        assert node.states.state(self.ONE) is LauncherState.STARTING
        node.now += timedelta(minutes=3, seconds=1)
        assert node.states.state(self.ONE) is LauncherState.UNRESPONSIVE

    def test_one_that_was_found_is_ready(self, node):
        node.listen("p1")
        assert node.states.state(self.ONE) is LauncherState.READY
        assert node.states.waiting_since(self.ONE) == NOW

    def test_until_it_is_marked(self, node):
        path = node.listen("p1")
        node.states.state(self.ONE)
        mark_unresponsive(path)
        mark_unresponsive(path)
        assert node.states.state(self.ONE) is LauncherState.UNRESPONSIVE

    def test_or_its_folder_vanishes(self, node):
        path = node.listen("p1")
        node.states.state(self.ONE)
        shutil.rmtree(node.root / "p1")
        mark_unresponsive(path)  # nothing to mark, and no failure
        assert is_unresponsive(path)
        assert node.states.state(self.ONE) is LauncherState.UNRESPONSIVE

    def test_a_qemu_that_lives_is_not_declared_dead(self, node):
        node.listen("p1")
        node.states.state(self.ONE)
        shutil.rmtree(node.root / "p1")
        node.alive = True
        assert node.states.state(self.ONE) is LauncherState.READY

    def test_what_is_forgotten_is_looked_for_anew(self, node):
        node.listen("p1")
        node.states.state(self.ONE)
        node.states.forget(self.ONE)
        assert len(node.states) == 0
        assert node.states.waiting_since(self.ONE) is None


class TestWatchdog:
    def test_thirty_seconds_of_silence(self):
        times = iter([0.0, 11.0, 22.0, 33.0])
        dog = Watchdog(lambda: next(times))
        assert [dog.heard("/s", answered=False) for _ in range(4)] == [False, False, False, True]

    def test_one_answer_makes_up_for_all(self):
        now = 0.0
        dog = Watchdog(lambda: now)
        dog.heard("/s", answered=False)
        now = 29.0
        assert not dog.heard("/s", answered=True)
        now = 59.0
        assert not dog.heard("/s", answered=False)

    def test_those_that_are_gone_take_no_room(self):
        dog = Watchdog(lambda: 0.0)
        dog.heard("/a", answered=False)
        dog.heard("/b", answered=False)
        dog.keep(["/b"])
        assert len(dog) == 1
