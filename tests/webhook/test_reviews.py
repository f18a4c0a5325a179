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
from tests.webhook.ask import answer, review, settings, vm, vmi

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


@pytest.mark.parametrize("depth", [50, 200, 300, 900])
@pytest.mark.parametrize("kind", ["VirtualMachine", "VirtualMachineInstance"])
@pytest.mark.parametrize("field", ["affinity", "nonsense", "domain"])
def test_depth_is_no_defect(depth: int, kind: str, field: str) -> None:
    made = vmi() if kind == "VirtualMachineInstance" else vm()
    spec = made["spec"] if kind == "VirtualMachineInstance" else made["spec"]["template"]["spec"]
    spec[field] = json.loads('{"x":' * depth + "{}" + "}" * depth)
    for old in (None, made):
        for path in (MUTATE, VALIDATE):
            body = json.dumps(review(made, old, kind=kind)).encode()
            response = orjson.loads(ADMISSION.answer(path, body))["response"]
            assert response.get("status", {}).get("code") in (None, 422)
        assert old is not None or not response["allowed"]


def test_what_is_nested_too_deeply_to_be_written_is_refused() -> None:
    made = vm()
    made["spec"]["template"]["spec"]["affinity"] = json.loads('{"x":' * 300 + "{}" + "}" * 300)
    body = json.dumps(review(made, kind="VirtualMachine")).encode()
    response = orjson.loads(ADMISSION.answer(MUTATE, body))["response"]
    assert response["status"]["message"] == "the object is nested too deeply"
    assert response["status"]["details"]["causes"] == []


def test_a_name_that_is_yet_to_be_made_is_not_told() -> None:
    asked = review(vmi(hostname="Not A Name"))
    asked["request"]["name"] = ""
    assert set(answer(VALIDATE, asked)["status"]["details"]) == {"causes"}


@pytest.mark.parametrize("path", [MUTATE, VALIDATE])
@pytest.mark.parametrize("kind", ["VirtualMachine", "VirtualMachineInstance"])
@pytest.mark.parametrize(
    ("operation", "missing"), [("CREATE", "object"), ("UPDATE", "object"), ("UPDATE", "oldObject")]
)
def test_an_object_that_is_missing_lets_nothing_through(
    kind: str, path: str, operation: str, missing: str
) -> None:
    asked = review({}, {}, kind=kind)
    asked["request"] |= {"operation": operation, missing: None}
    with pytest.raises(ReviewError, match=f"request.{missing}: must be there on {operation}"):
        ADMISSION.answer(path, orjson.dumps(asked))


@pytest.mark.parametrize("kind", ["VirtualMachine", "VirtualMachineInstance"])
def test_a_rehearsal_is_answered_like_the_deed(kind: str) -> None:
    made = vmi() if kind == "VirtualMachineInstance" else vm()
    asked = review(made, kind=kind)
    asked["request"]["dryRun"] = True
    assert answer(MUTATE, asked)["allowed"]
    assert answer(VALIDATE, asked)["allowed"]


def test_of_a_name_that_is_there_twice_the_last_counts() -> None:
    for first, last in (("good", "Not Good"), ("Not Good", "good")):
        body = orjson.dumps(review(vmi(hostname="x")))
        twice = body.replace(b'"hostname":"x"', f'"hostname":"{first}","hostname":"{last}"'.encode())
        response = orjson.loads(ADMISSION.answer(VALIDATE, twice))["response"]
        assert response["allowed"] == (last == "good")


def test_an_answer_is_small_whatever_was_sent() -> None:
    long = "k" * 1_000_000
    for spec in (
        {long: 1},
        {"hostname": long},
        {"nodeSelector": {long: 1}},
        {"volumes": [{"name": long}] * 50},
    ):
        assert len(ADMISSION.answer(VALIDATE, orjson.dumps(review(vmi(**spec))))) < 20_000


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
