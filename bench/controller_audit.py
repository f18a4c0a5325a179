"""What the API server's audit log says of the controller's calls."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.cluster.cluster import Cluster

AGENT = "kvnode-controller"
"""How the audit log knows the controller's calls."""
NOT_A_VM_S = ("leases",)


@dataclass(frozen=True, slots=True)
class Call:
    """One call that was answered; times are seconds of the epoch."""

    agent: str
    verb: str
    resource: str
    """With its subresource: ``virtualmachines/status``."""
    name: str
    code: int
    began: float
    ended: float

    @property
    def words(self) -> str:
        """Verb and resource."""
        return f"{self.verb} {self.resource}"


def _call(entry: dict[str, Any]) -> Call:
    target = entry.get("objectRef") or {}
    return Call(
        str(entry.get("userAgent", "")),
        entry["verb"],
        "/".join(filter(None, (target.get("resource"), target.get("subresource")))),
        str(target.get("name", "")),
        entry["responseStatus"]["code"],
        datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp(),
        datetime.fromisoformat(entry["stageTimestamp"]).timestamp(),
    )


def answered(cluster: Cluster, since: float) -> Iterator[Call]:
    """All calls that began after a time and were answered, watches and lists left out."""
    with (cluster.plan.root / "audit.log").open() as lines:
        for line in lines:
            entry: dict[str, Any] = json.loads(line)
            if entry["stage"] != "ResponseComplete" or entry["verb"] in ("watch", "list"):
                continue
            call = _call(entry)
            if call.began >= since:
                yield call


def calls(cluster: Cluster, since: float) -> tuple[Counter[str], Counter[str]]:
    """The controller's calls since a time, by verb and resource, and those of them that were refused."""
    made: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for call in answered(cluster, since):
        if call.agent != AGENT or call.resource in NOT_A_VM_S:
            continue
        made[call.words] += 1
        if call.code >= 400:
            refused[f"{call.words} {call.code}"] += 1
    return made, refused


def parts_of(cluster: Cluster, spans: list[tuple[str, float, float]]) -> dict[str, dict[str, float]]:
    """Where the time of restarts went, as medians in milliseconds: from the VMI's failure to its next creation.

    A step is a call about the VM or its pod; `before` is what passed since the last answer of such a call (watches,
    queues, decisions), `call` the API server's own time, `at` when the call was answered. `spans` has a VM's name
    and when its restart began and ended.
    """
    found: dict[str, list[tuple[float, float, float]]] = {}
    everything = list(answered(cluster, min(began for _, began, _ in spans)))
    for name, began, ended in spans:
        last, seen = began, Counter[str]()
        mine = (one for one in everything if _is_about(one, name) and began <= one.began <= ended)
        for call in sorted(mine, key=lambda one: one.ended):
            words = f"{'stand-in: ' if call.agent == 'standin' else ''}{call.words}"
            words += f" refused with {call.code}" if call.code >= 400 else ""
            seen[words] += 1
            words += f" ({seen[words]})" if seen[words] > 1 else ""
            step = (call.began - last, call.ended - call.began, call.ended - began)
            found.setdefault(words, []).append(step)
            last = max(last, call.ended)
            if call.words == "create virtualmachineinstances":
                break
    most = max(len(steps) for steps in found.values())
    usual = {words: steps for words, steps in found.items() if 2 * len(steps) > most}
    return {
        words: {
            part: round(1000 * statistics.median(values), 1)
            for part, values in zip(("before", "call", "at"), zip(*steps, strict=True), strict=True)
        }
        for words, steps in sorted(usual.items(), key=lambda one: statistics.median(s[2] for s in one[1]))
    }


def _is_about(call: Call, name: str) -> bool:
    """Whether it is the controller's or the stand-in's, about the VM or its pod. Events are on no path."""
    if call.agent not in (AGENT, "standin") or call.resource in ("events", *NOT_A_VM_S) or call.verb == "get":
        return False
    # A creation's name is in its body, which is not logged.
    pods = call.resource.startswith("pods") and call.name.startswith(f"virt-launcher-{name}-")
    return pods or call.name in (name, "")
