"""The account of a pod's memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.api.quantity import Quantity
from kvnode.spec.pod import LauncherSettings, MemoryAccount, explain_memory
from tests.spec.pod.helpers import GIB, MIB, compute, gates, instance

ONE_CPU = {"cores": 1}
PAGES = {"guest": "2Gi", "hugepages": {"pageSize": "2Mi"}}


def account(vmi: dict[str, Any], config: dict[str, Any] | None = None, **arguments: Any) -> MemoryAccount:
    made = explain_memory(vmi, "amd64", config, **arguments)
    assert sum(term.bytes for term in made.terms) == made.request
    return made


SPECS = st.fixed_dictionaries(
    {
        "memory": st.sampled_from([{}, {"guest": "64Mi"}, PAGES]),
        "resources": st.fixed_dictionaries(
            {},
            optional={
                "requests": st.sampled_from([{"memory": "1Gi"}, {"memory": "3Gi", "cpu": "1"}]),
                "limits": st.sampled_from([{"memory": "3Gi"}, {"memory": "3Gi", "cpu": "1"}]),
                "overcommitGuestOverhead": st.booleans(),
            },
        ),
        "cpu": st.sampled_from([{}, {"cores": 2, "dedicatedCpuPlacement": True}]),
    }
)


@given(SPECS, st.sampled_from([100, 150]))
def test_the_terms_add_up_to_what_the_pod_requests(spec: dict[str, Any], overcommit: int) -> None:
    vmi, config = instance(**spec), gates(memoryOvercommit=overcommit)
    made, resources = account(vmi, config), compute(vmi, config)["resources"]
    assert made.request == Quantity(resources["requests"]["memory"]).value
    limit = resources["limits"].get("memory")
    assert made.limit == (None if limit is None else Quantity(limit).value)


@pytest.mark.parametrize(
    ("spec", "name", "size", "field"),
    [
        ({"memory": {"guest": "1Gi"}}, "guest", GIB, "spec.domain.memory.guest"),
        (
            {"resources": {"requests": {"memory": "1Gi"}}},
            "guest",
            GIB,
            "spec.domain.resources.requests.memory",
        ),
        ({"resources": {"limits": {"memory": "1Gi"}}}, "guest", GIB, "spec.domain.resources.limits.memory"),
        (
            {"memory": PAGES, "resources": {"requests": {"memory": "3Gi"}}},
            "beyond-hugepages",
            GIB,
            "spec.domain.resources.requests.memory",
        ),
    ],
)
def test_where_the_guests_part_comes_from(spec: dict[str, Any], name: str, size: int, field: str) -> None:
    first = account(instance(**spec)).terms[0]
    assert (first.name, first.bytes, first.field) == (name, size, field)


def test_hugepages_are_told_apart() -> None:
    made = account(instance(memory=PAGES, cpu=ONE_CPU))
    assert (made.request, made.hugepages) == (268 * MIB, {"hugepages-2Mi": 2 * GIB})
    assert made.terms[0].name == "launcher-monitor"


def test_page_tables_that_nobody_requests_are_warned_of() -> None:
    vmi = instance(memory={"guest": "64Gi"}, cpu=ONE_CPU)
    (warning,) = account(vmi).warnings
    assert warning.field == "spec.domain.memory.guest"
    assert "up to 128Mi of page tables" in warning.message
    safe = account(vmi, settings=LauncherSettings(guest_page_tables=True))
    assert safe.warnings == ()
    assert safe.request - account(vmi).request == 134217728


@pytest.mark.parametrize(
    "spec",
    [
        {"memory": {"guest": "1Gi"}, "resources": {"requests": {"memory": "1Gi"}}},
        {"memory": PAGES},
        {},
    ],
)
def test_nothing_is_said_where_nothing_is_missing(spec: dict[str, Any]) -> None:
    assert account(instance(**spec)).warnings == ()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"cpu": {"cores": 1, "dedicatedCpuPlacement": True}}, "spec.domain.cpu.dedicatedCpuPlacement"),
        (
            {"resources": {kind: {"cpu": "1", "memory": "1Gi"} for kind in ("requests", "limits")}},
            "spec.domain.resources",
        ),
    ],
)
def test_a_pod_that_may_use_no_more_is_warned_of(spec: dict[str, Any], field: str) -> None:
    (warning,) = account(instance(**spec)).warnings
    assert warning.field == field
    assert "killed" in warning.message


def test_overhead_that_is_left_out_is_a_term_and_a_warning() -> None:
    resources = {"requests": {"memory": "1Gi"}, "overcommitGuestOverhead": True}
    made = account(instance(resources=resources))
    assert made.request == GIB
    assert made.terms[-1].name == "overcommitted"
    (warning,) = made.warnings
    assert warning.field == "spec.domain.resources.overcommitGuestOverhead"


def test_overcommit_is_explained() -> None:
    made = account(instance(memory={"guest": "3Gi"}), gates(memoryOvercommit=150))
    assert made.terms[0].bytes == 2 * GIB
    assert "150 per cent" in made.terms[0].reason
