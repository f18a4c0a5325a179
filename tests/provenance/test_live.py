"""Which fields a running guest takes, by the rules of KubeVirt's VM controller."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.provenance.live import RULES, field_verdict


def instance(**domain: Any) -> dict[str, Any]:
    return {"spec": {"architecture": "amd64", "domain": domain}}


def cpu(sockets: int, **more: Any) -> dict[str, Any]:
    return instance(cpu={"sockets": sockets, "maxSockets": 4, **more})


@pytest.mark.parametrize(
    ("sockets", "live", "why"),
    [(3, True, "plugged in"), (4, True, "plugged in"), (5, False, "no room"), (1, False, "never taken away")],
)
def test_sockets(sockets: int, live: bool, why: str) -> None:
    verdict = field_verdict("spec.domain.cpu.sockets", cpu(2), cpu(sockets))
    assert verdict.live is live
    assert why in verdict.why


def test_sockets_on_arm64() -> None:
    running, wanted = cpu(2), cpu(3)
    running["spec"]["architecture"] = "arm64"
    assert not field_verdict("spec.domain.cpu.sockets", running, wanted).live


def memory(guest: str, most: str | None = "8Gi", **domain: Any) -> dict[str, Any]:
    return instance(memory={"guest": guest, **({"maxGuest": most} if most else {})}, **domain)


@pytest.mark.parametrize(
    ("running", "wanted", "live", "why"),
    [
        (memory("2Gi"), memory("4Gi"), True, "virtio-mem"),
        (memory("2Gi"), memory("8Gi"), True, "virtio-mem"),
        (memory("2Gi"), memory("9Gi"), False, "maxGuest is less"),
        (memory("2Gi"), memory("1Gi"), False, "started with"),
        (memory("2Gi", None), memory("4Gi"), False, "without memory.maxGuest"),
        (memory("2Gi"), memory("2147483649"), False, "whole blocks"),
        (memory("512Mi"), memory("768Mi"), False, "below 1Gi"),
        (memory("2Gi"), memory("4Gi", cpu={"realtime": {}}), False, "realtime"),
        (memory("2Gi"), memory("4Gi", cpu={"numa": {"guestMappingPassthrough": {}}}), False, "NUMA"),
        (memory("2Gi"), memory("4Gi", launchSecurity={"sev": {}}), False, "encrypted"),
    ],
)
def test_memory(running: dict[str, Any], wanted: dict[str, Any], live: bool, why: str) -> None:
    verdict = field_verdict("spec.domain.memory.guest", running, wanted)
    assert verdict.live is live
    assert why in verdict.why


def test_memory_in_gigantic_blocks() -> None:
    running, wanted = memory("2Gi"), memory("3074Mi")
    assert field_verdict("spec.domain.memory.guest", running, wanted).live
    wanted["spec"]["domain"]["memory"]["hugepages"] = {"pageSize": "1Gi"}
    assert "whole blocks" in field_verdict("spec.domain.memory.guest", running, wanted).why


def test_memory_compares_with_what_the_guest_was_started_with() -> None:
    running = {**memory("4Gi"), "status": {"memory": {"guestAtBoot": "2Gi"}}}
    assert field_verdict("spec.domain.memory.guest", running, memory("3Gi")).live


@pytest.mark.parametrize(
    ("path", "live"),
    [
        ("spec.nodeSelector.zone", True),
        ("spec.affinity.podAffinity", True),
        ("spec.tolerations[0].key", True),
        ("spec.domain.cpu.cores", False),
        ("spec.domain.cpu.socketsOfAnotherKind", False),
        ("spec.domain.memory.maxGuest", False),
        ("spec.domain.resources.requests.memory", False),
        ("metadata.annotations.a", False),
        ("status.runtimeUser", True),
    ],
)
def test_other_fields(path: str, live: bool) -> None:
    assert field_verdict(path, instance(), instance()).live is live


def test_rules_say_where_they_come_from() -> None:
    assert all(rule.where.startswith("pkg/") and rule.live for rule in RULES)
    assert all(condition.otherwise for rule in RULES for condition in rule.conditions)


@pytest.mark.parametrize("value", [None, [], "x", {"cpu": 3}, {"memory": {"guest": [1]}}])
def test_any_shape_gets_an_answer(value: Any) -> None:
    odd = {"spec": {"domain": value}}
    for path in ("spec.domain.cpu.sockets", "spec.domain.memory.guest"):
        assert field_verdict(path, odd, odd).why
