"""Stand-ins for the agent's parts that write down what is asked of them, as the cases do."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from kvnode.agent.domain import Domain

NOW = datetime(2024, 6, 1, 12, 0, 0, tzinfo=UTC)
Result = TypeVar("Result")


def drive(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine that never waits for anything."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: Result = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a stand-in waited")


class Clock:
    """A clock that stands still."""

    def now(self) -> datetime:
        return NOW


class Recorder:
    """Writes Events down."""

    def __init__(self, calls: list[str]):
        self._calls = calls

    def event(self, _vmi, kind, reason, _message):
        self._calls.append(f"event:{kind}:{reason}")


def conditions(vmi: dict[str, Any]) -> list[dict[str, Any]]:
    """Conditions as the cases list them."""
    return [
        {
            "type": str(one["type"]),
            "status": str(one["status"]),
            "reason": str(one.get("reason") or ""),
            "has_message": bool(one.get("message")),
            "has_last_transition_time": bool(one.get("lastTransitionTime")),
            "has_last_probe_time": bool(one.get("lastProbeTime")),
        }
        for one in vmi["status"].get("conditions") or []
    ]


def domain(status: str, reason: str = "", **spec: Any) -> Domain:
    """A domain in a state, with parts of its ``Spec``."""
    return Domain({"Spec": spec, "Status": {"Status": status, "Reason": reason}})
