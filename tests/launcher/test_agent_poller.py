"""What guest agents answer, read with distrust; and when they are asked."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, cast

import libvirt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.launcher import agent_poller
from kvnode.launcher.agent_poller import (
    AgentPoller,
    Question,
    questions,
    read_agent,
    read_filesystems,
    read_freeze,
    read_guest_info,
)
from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.pod.settings import Intervals
from kvnode.virt.connection import Connection
from tests.virt.errors import libvirt_error

ALL = 0xFF
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_interfaces() -> None:
    info = {
        "if.count": 3,
        "if.0.name": "lo",
        "if.0.addr.count": 1,
        "if.0.addr.0.addr": "127.0.0.1",
        "if.1.name": "eth0",
        "if.1.hwaddr": "02:00:00:00:00:01",
        "if.1.addr.count": 3,
        "if.1.addr.0.type": "ipv6",
        "if.1.addr.0.addr": "fe80::1",
        "if.1.addr.1.type": "ipv4",
        "if.1.addr.1.addr": "10.0.2.15",
        "if.1.addr.2.type": "ipv4",
        "if.1.addr.2.addr": "10.0.2.16",
        "if.2.name": "eth1",
    }
    assert read_guest_info(info, libvirt.VIR_DOMAIN_GUEST_INFO_INTERFACES) == {
        "interfaces": [
            {
                "Mac": "02:00:00:00:00:01",
                "Ip": "10.0.2.15",
                "IPs": ["fe80::1", "10.0.2.15", "10.0.2.16"],
                "InterfaceName": "eth0",
            },
            {"Mac": "", "Ip": "", "IPs": None, "InterfaceName": "eth1"},
        ]
    }


def test_only_what_was_asked_for_is_answered() -> None:
    info = {
        "hostname": "guest",
        "timezone.name": "CET",
        "timezone.offset": 3600,
        "os.id": "debian",
        "os.pretty-name": "Debian 12",
        "user.count": 1,
        "user.0.name": "root",
        "user.0.login-time": 1_700_000_000_500,
    }
    assert read_guest_info(info, libvirt.VIR_DOMAIN_GUEST_INFO_HOSTNAME) == {"hostname": "guest"}
    assert read_guest_info(info, libvirt.VIR_DOMAIN_GUEST_INFO_TIMEZONE) == {"timezone": ("CET", 3600)}
    told = read_guest_info(info, libvirt.VIR_DOMAIN_GUEST_INFO_OS)["os"]
    assert (told["Id"], told["PrettyName"], told["Name"]) == ("debian", "Debian 12", "")
    assert read_guest_info(info, libvirt.VIR_DOMAIN_GUEST_INFO_USERS) == {
        "users": [{"userName": "root", "domain": "", "loginTime": 1_700_000_000.5}]
    }


def test_agent_and_file_systems() -> None:
    assert read_agent({"version": "7.2", "supported_commands": [{"name": "a", "enabled": True}, "junk"]}) == {
        "version": "7.2",
        "commands": [{"name": "a", "enabled": True}],
    }
    assert read_filesystems(
        [
            {
                "name": "vda1",
                "mountpoint": "/",
                "type": "ext4",
                "used-bytes": 1,
                "total-bytes": 2,
                "disk": [{"bus-type": "virtio"}],
            }
        ]
    ) == [
        {
            "diskName": "vda1",
            "mountPoint": "/",
            "fileSystemType": "ext4",
            "usedBytes": 1,
            "totalBytes": 2,
            "disk": [{"serial": "", "busType": "virtio"}],
        }
    ]
    assert read_freeze("thawed") == "thawed"


@given(json_values)
def test_any_answer_is_read_or_refused(answer: Any) -> None:
    for read in (read_agent, read_filesystems, read_freeze):
        with contextlib.suppress(ValueError):
            read(answer)


@given(
    st.dictionaries(
        st.sampled_from(["if.count", "if.0.addr.count", "user.count", "timezone.offset"]), json_values
    )
)
def test_any_guest_info_is_read(info: dict[str, Any]) -> None:
    assert isinstance(read_guest_info(info, ALL), dict)


def test_a_guest_that_counts_far_is_cut_short() -> None:
    assert len(read_guest_info({"user.count": 1 << 40}, libvirt.VIR_DOMAIN_GUEST_INFO_USERS)["users"]) == 1000


def test_each_kind_has_the_interval_of_its_flag() -> None:
    intervals = Intervals(system=1, files=2, users=3, version=4, freeze=5)
    found = {question.name: question.interval for question in questions(intervals)}
    assert found == {
        "guest-info": 4,
        "guest-get-fsinfo": 2,
        "guest-fsfreeze-status": 5,
        "system": 1,
        "users": 3,
    } | ({"load": 1} if "load" in found else {})


class Guest:
    """Stands for connection and domain; answers are what it was given."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked = 0

    @property
    def raw(self) -> Guest:
        return self

    def lookupByName(self, _name: str) -> Guest:  # noqa: N802 - libvirt's name
        return self

    def ask(self) -> dict[str, Any]:
        """The next answer; the last for ever."""
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return {"fs_freeze": answer}


def polled(guest: Guest, monkeypatch: pytest.MonkeyPatch, times: int) -> tuple[AgentStore, list[str | None]]:
    """Poll until the guest was asked so often; returns the store, and what each change that was told was."""
    monkeypatch.setattr(
        agent_poller, "questions", lambda _intervals: [Question("freeze", 0.01, lambda domain: domain.ask())]
    )
    told: list[str | None] = []

    async def play() -> AgentStore:
        store = AgentStore()
        poller = AgentPoller(cast(Connection, guest), "ns_vm", store)
        poller.on_change = lambda: told.append(store.fs_freeze)
        poller.run_while(False)
        assert not poller.running
        poller.run_while(True)
        poller.run_while(True)
        async with asyncio.timeout(60):
            while guest.asked < times:
                await asyncio.sleep(0.01)
        poller.run_while(False)
        asked = guest.asked
        await asyncio.sleep(0.1)
        assert guest.asked <= asked + 1, "nothing is asked while nobody answers"
        poller.stop()
        return store

    return asyncio.run(play()), told


def test_only_changes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    store, told = polled(Guest("thawed", "thawed", "frozen", "thawed"), monkeypatch, 6)
    assert store.fs_freeze == "thawed"
    assert told == ["thawed", "frozen", "thawed"]


def test_an_answer_that_cannot_be_read_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest(ValueError("nonsense"), libvirt_error("the agent hangs"), "frozen")
    store, told = polled(guest, monkeypatch, 4)
    assert (store.fs_freeze, told) == ("frozen", ["frozen"])


def test_texts_can_be_told_however_long_and_broken_they_are() -> None:
    """Or a guest could keep its node agent from hearing anything of it."""
    kinds = libvirt.VIR_DOMAIN_GUEST_INFO_INTERFACES
    info = {"if.count": 1, "if.0.name": "\ud800", "if.0.hwaddr": "m" * (16 << 20)}
    (told,) = read_guest_info(info, kinds)["interfaces"]
    assert told["InterfaceName"] == "\ufffd"
    assert len(told["Mac"]) == 1024
    assert read_freeze("frozen\udfff" + "x" * 9999).encode()[:9] == "frozen\ufffd".encode()
    assert read_filesystems([{"name": "\udc80"}])[0]["diskName"] == "\ufffd"
