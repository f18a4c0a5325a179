"""The domain as an agent that asks for it finds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kvnode.launcher.manager import manager
from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.manager.manager import Manager
from kvnode.virt.domain_json import make_status, new_domain


def asked(found: dict[str, Any] | None, store: AgentStore, monkeypatch: pytest.MonkeyPatch) -> Any:
    async def call(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    monkeypatch.setattr(manager, "read_domain", lambda _host: found)
    made = object.__new__(Manager)  # of its parts two are used
    made.agent = store
    made.host = SimpleNamespace(call=call)  # type: ignore[assignment]
    return asyncio.run(made.domain())


def test_what_the_guest_agent_told_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or an agent that starts anew would take it out of the VMI's status."""
    found = new_domain("ns", "vm", status=make_status(Status="Running", Reason="Unknown"))
    store = AgentStore(interfaces=[{"interfaceName": "eth0"}], os={"name": "Debian"}, fs_freeze="thawed")
    status = asked(found, store, monkeypatch)["Status"]
    assert (status["Status"], status["Reason"]) == ("Running", "Unknown")
    assert status["Interfaces"] == [{"interfaceName": "eth0"}]
    assert status["OSInfo"] == {"name": "Debian"}
    assert status["FSFreezeStatus"] == {"Status": "thawed"}


def test_an_agent_that_told_nothing_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = new_domain("ns", "vm", status=make_status(Status="Running", Reason="Unknown"))
    assert asked(found, AgentStore(), monkeypatch) == found
    assert asked(None, AgentStore(), monkeypatch) is None
