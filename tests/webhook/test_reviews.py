"""Reading questions and writing answers: hostile input, defects, sizes."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.webhook import handlers
from kvnode.webhook.handlers import MUTATE, VALIDATE, Admission
from kvnode.webhook.reviews import ReviewError
from tests.webhook.ask import answer, review, settings, vmi

ADMISSION = Admission(settings({}))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is no JSON"),
        (b"[]", "is no AdmissionReview"),
        (b"[" * 100000, "is no JSON"),
        (b'{"apiVersion": "admission.k8s.io/v1beta1"}', "is no AdmissionReview of admission.k8s.io/v1"),
        (b'{"apiVersion": "admission.k8s.io/v1", "request": 7}', "request: must be an object"),
        (b'{"apiVersion": "admission.k8s.io/v1"}', "request.resource.group: must be kubevirt.io"),
    ],
)
def test_what_is_no_review_is_said_so(body: bytes, message: str) -> None:
    with pytest.raises(ReviewError, match=message):
        ADMISSION.answer(MUTATE, body)


def test_other_operations_are_none_of_ours() -> None:
    asked = review(vmi())
    asked["request"]["operation"] = "DELETE"
    with pytest.raises(ReviewError, match=r"request\.operation: must be CREATE or UPDATE"):
        ADMISSION.answer(VALIDATE, orjson.dumps(asked))


@pytest.mark.parametrize(
    "change", [{"resource": {"group": "kubevirt.io", "resource": "kubevirts"}}, {"subResource": "x"}]
)
@pytest.mark.parametrize("path", [MUTATE, VALIDATE])
def test_other_resources_are_let_through_as_they_are(path: str, change: dict[str, Any]) -> None:
    asked = review({"spec": "nonsense"})
    asked["request"] |= change
    assert answer(path, asked) == {"uid": asked["request"]["uid"], "allowed": True}


@pytest.mark.parametrize("path", [MUTATE, VALIDATE])
@pytest.mark.parametrize("kind", ["VirtualMachine", "VirtualMachineInstance"])
def test_a_defect_lets_nothing_through(path: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret")

    for decisions in handlers._DECISIONS.values():
        for name in decisions:
            monkeypatch.setitem(decisions, name, fail)
    response = answer(path, review(vmi(), kind=kind))
    assert not response["allowed"]
    assert response["status"]["code"] == 500
    assert "secret" not in json.dumps(response)


def test_many_causes_are_cut_short() -> None:
    made = vmi(volumes=[{"name": "v"} for _ in range(200)])
    status = answer(VALIDATE, review(made))["status"]
    assert len(status["details"]["causes"]) == 20
    assert status["message"].endswith(" more")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["spec", "status", "metadata", "template", "domain", "devices", "cpu", "memory", "labels"]
)
OBJECTS = st.recursive(
    JSON, lambda inner: st.dictionaries(NAMES, inner, max_size=4) | st.lists(inner, max_size=2), max_leaves=12
)


@given(
    st.dictionaries(NAMES, OBJECTS),
    st.none() | st.dictionaries(NAMES, OBJECTS),
    st.sampled_from(["VirtualMachine", "VirtualMachineInstance"]),
    st.sampled_from([MUTATE, VALIDATE]),
)
def test_whatever_is_asked_is_answered(new: Any, old: Any, kind: str, path: str) -> None:
    response = answer(path, review(new, old, kind=kind))
    assert response["allowed"] or response["status"]["message"]
    assert response.get("status", {}).get("code") != 500
