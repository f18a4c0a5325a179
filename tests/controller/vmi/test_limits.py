"""Limits that a namespace demands of its pods."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.api.quantity import Quantity
from tests.controller.objects import call, vmi
from tests.controller.vmi.test_phases import look
from tests.reports import report

CREATE = "create pods"
RATIO = "alpha.kubevirt.io/auto-memory-limits-ratio"
SELECTOR = {"matchLabels": {"team": "a"}}


def quota(*resources: str, namespace: str = "default") -> dict[str, Any]:
    hard = dict.fromkeys(resources, "100")
    return {"metadata": {"name": "-".join(resources), "namespace": namespace}, "spec": {"hard": hard}}


def namespace(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "default", "labels": labels}}


def resources(instance: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The compute container's, of the pod that is made."""
    payload = call(look(instance or vmi("Pending"), **more), CREATE)["payload"]
    return dict(payload["specSummary"]["computeResources"])


def limit(instance: dict[str, Any] | None = None, **more: Any) -> str | None:
    found: str | None = resources(instance, **more).get("limits", {}).get("memory")
    return found


def ratio_of(found: dict[str, Any]) -> float:
    """How many times the request the limit is."""
    return Quantity(found["limits"]["memory"]).value / Quantity(found["requests"]["memory"]).value


@report("B63")
@pytest.mark.parametrize(
    ("labels", "ratio"),
    [({}, 2.0), ({RATIO: "1.5"}, 1.5), ({RATIO: "1"}, 1.0), ({RATIO: "0.5"}, 2.0), ({RATIO: "x"}, 2.0)]
    + [({RATIO: text}, 2.0) for text in ("", "nan", "inf", "-3")],
)
def test_memory_is_limited_to_a_multiple_of_the_request(labels: dict[str, str], ratio: float) -> None:
    found = resources(resourceQuotas=[quota("limits.memory")], namespaces=[namespace(**labels)])
    assert ratio_of(found) == ratio


def test_a_quota_elsewhere_or_of_something_else_limits_nothing() -> None:
    assert limit() is None
    assert limit(resourceQuotas=[quota("limits.memory", namespace="other")]) is None
    assert limit(resourceQuotas=[quota("requests.memory", "pods")]) is None


def test_a_namespace_that_is_not_known_yet_has_the_ordinary_ratio() -> None:
    found = resources(resourceQuotas=[quota("pods"), quota("limits.memory")])
    assert ratio_of(found) == 2.0


def test_the_vm_s_own_limit_counts() -> None:
    instance = vmi("Pending")
    instance["spec"]["domain"]["resources"]["limits"] = {"memory": "3Gi", "cpu": "7"}
    own = resources(instance)
    assert resources(instance, resourceQuotas=[quota("limits.memory", "limits.cpu")]) == own


def test_cpus_are_limited_where_there_is_a_quota_of_them() -> None:
    assert resources(resourceQuotas=[quota("limits.cpu")])["limits"]["cpu"] == "1"


@pytest.mark.parametrize(
    ("selector", "limited"),
    [
        (None, False),
        ({}, True),
        (SELECTOR, True),
        ({"matchLabels": {"team": "b"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, False),
        ({**SELECTOR, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "Like", "values": ["a"]}]}, False),
        ({"matchExpressions": ["team"]}, False),
        ({"matchExpressions": {"key": "team"}}, False),
        ({"matchLabels": ["team"]}, False),
        ("team=a", False),
    ],
)
def test_cpus_are_limited_in_selected_namespaces(selector: Any, limited: bool) -> None:
    config = {"autoCPULimitNamespaceLabelSelector": selector}
    found = resources(clusterConfig=config, namespaces=[namespace(team="a")])
    assert ("cpu" in found.get("limits", {})) is limited
