"""Types and names of fields, and input that means harm."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.spec import model
from kvnode.spec.cause import Cause
from kvnode.spec.validation import validate, warnings
from tests.spec.validation.build import devices, disk, domain, found, merged, vmi


def reasons(spec: dict[str, Any]) -> list[tuple[str, str]]:
    return [(cause.field.removeprefix("spec."), cause.reason) for cause in validate(vmi(spec), "amd64")]


WRONG = "FieldValueTypeInvalid"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param(domain(cpu={"cores": 1.5}), "domain.cpu.cores", id="fraction"),
        pytest.param(domain(cpu={"cores": 2.0}), "domain.cpu.cores", id="float"),
        pytest.param(domain(cpu={"cores": "2"}), "domain.cpu.cores", id="text"),
        pytest.param(domain(cpu={"cores": True}), "domain.cpu.cores", id="boolean"),
        pytest.param(domain(cpu={"cores": -1}), "domain.cpu.cores", id="negative"),
        pytest.param(domain(cpu={"cores": 2**32}), "domain.cpu.cores", id="too large"),
        pytest.param(domain(cpu={"cores": 10**5000}), "domain.cpu.cores", id="huge"),
        pytest.param(domain(cpu={"cores": math.nan}), "domain.cpu.cores", id="NaN"),
        pytest.param(domain(cpu=[]), "domain.cpu", id="list for object"),
        pytest.param(devices(disks={}), "domain.devices.disks", id="object for list"),
        pytest.param(devices(disks=[None]), "domain.devices.disks[0]", id="null in a list"),
        pytest.param({"nodeSelector": {"a": 1}}, "nodeSelector.a", id="number in a map"),
        pytest.param({"nodeSelector": {1: "a"}}, "nodeSelector[1]", id="number as key"),
        pytest.param({"hostname": 7}, "hostname", id="number for text"),
        pytest.param(domain(memory={"guest": "lots"}), "domain.memory.guest", id="no quantity"),
        pytest.param(domain(memory={"guest": math.inf}), "domain.memory.guest", id="infinite quantity"),
        pytest.param(domain(memory={"guest": 10**5000}), "domain.memory.guest", id="huge quantity"),
        pytest.param(domain(memory={"guest": []}), "domain.memory.guest", id="list for quantity"),
        pytest.param(
            devices(autoattachMemBalloon="no"), "domain.devices.autoattachMemBalloon", id="yes or no"
        ),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 1.5}}},
            "livenessProbe.httpGet.port",
            id="fraction of a port",
        ),
    ],
)
def test_wrong_types(spec: dict[str, Any], field: str) -> None:
    assert reasons(spec) == [(field, WRONG)]


def test_numbers_are_quantities_too() -> None:
    assert found(domain(memory={"guest": 1073741824})) == []


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+01:00"])
def test_times(text: str) -> None:
    assert validate(vmi(creationTimestamp=text), "amd64") == []


@pytest.mark.parametrize("text", ["2026-01-31", "2026-13-01T00:00:00Z", "soon", 0])
def test_no_times(text: Any) -> None:
    assert [c.field for c in validate(vmi(creationTimestamp=text), "amd64")] == ["metadata.creationTimestamp"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"dnsPolicy": "Sometimes"}, "dnsPolicy"),
        ({"tolerations": [{"operator": "Roughly"}]}, "tolerations[0].operator"),
        (domain(rebootPolicy="Never"), "domain.rebootPolicy"),
    ],
)
def test_enumerations(spec: dict[str, Any], field: str) -> None:
    assert reasons(spec) == [(field, "FieldValueNotSupported")]


def test_an_unknown_field_is_met_with_the_nearest_known() -> None:
    (cause,) = validate(vmi(devices(diskss=[])), "amd64")
    assert cause == Cause(
        "spec.domain.devices.diskss", "FieldValueNotSupported", "is no field of this API: did you mean disks?"
    )


def test_an_unknown_field_at_the_top() -> None:
    assert [c.field for c in validate({**vmi(), "spek": {}}, "amd64")] == ["spek"]


def test_unknown_fields_that_a_cluster_drops_are_warned_of() -> None:
    document = {**vmi(color="red"), "status": {"runtimeUser": 107, "mood": "good"}}
    assert validate(document, "amd64") == []
    assert [cause.field for cause in warnings(document, "amd64")] == ["metadata.color", "status.mood"]


def test_missing_fields() -> None:
    assert [c.field for c in validate({}, "amd64")] == ["spec"]
    assert [c.field for c in validate({"spec": {}}, "amd64")] == ["spec.domain"]
    assert [c.field for c in validate({"spec": {"domain": {}}}, "amd64")] == ["spec.domain.devices"]
    assert reasons(devices(disks=[{}])) == [("domain.devices.disks[0].name", "FieldValueRequired")]


def test_another_kind() -> None:
    document = {**vmi(), "kind": "Pod", "apiVersion": "v1"}
    assert {c.field for c in validate(document, "amd64")} == {"kind", "apiVersion"}


@pytest.mark.parametrize("document", [None, True, 7, math.nan, "vm", b"{}", [], [vmi()]])
def test_no_object_at_all(document: Any) -> None:
    (cause,) = validate(document, "amd64")
    assert (cause.field, cause.reason) == ("", WRONG)
    assert warnings(document, "amd64") == []


def test_null_is_not_set() -> None:
    assert found(domain(cpu=None, clock=None)) == []


def test_lists_have_an_end() -> None:
    disks = [{"name": f"d{n}", "cdrom": {}} for n in range(257)]
    assert found({**devices(disks=disks), "volumes": []}) == ["domain.devices.disks"]
    assert found({**devices(disks=disks[:256]), "volumes": []}) == []


def test_many_unknown_fields_take_no_long_time() -> None:
    spec = {f"{name}{n}": n for n in range(20_000) for name in ("volume", "domain")}
    started = time.process_time()
    causes = validate(merged(vmi(), {"spec": spec}), "amd64")
    assert len(causes) == 40_000
    assert time.process_time() - started < 5
    assert [("did you mean" in cause.message) for cause in causes[:21]] == [True] * 20 + [False]


def test_deep_nesting_is_not_followed() -> None:
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = [deep]
    document = vmi(domain(cpu={}))
    document["spec"]["domain"]["cpu"]["cores"] = deep
    document["metadata"]["managedFields"] = [{"fieldsV1": deep}]
    assert [c.field for c in validate(document, "amd64")] == ["spec.domain.cpu.cores"]
    del document["spec"]["domain"]["cpu"]["cores"]
    assert validate(document, "amd64") == []


@pytest.mark.parametrize("key", ["a\nb", "\x1b[31m", "é", "x" * 10_000, "\ud800", ""])
def test_messages_and_paths_are_one_short_printable_line(key: str) -> None:
    causes = validate(merged(vmi(), {"spec": {key: 1, "hostname": key or "\0"}}), "amd64")
    causes += validate(vmi({"hostname": key or "\0"}), "amd64")
    assert len(causes) == 2
    for cause in causes:
        assert str(cause).isprintable()
        assert len(str(cause)) < 300


def test_the_document_is_left_as_it_was() -> None:
    document = vmi(disk(blockSize={"custom": {"logical": 1}}))
    before = copy.deepcopy(document)
    validate(document, "amd64")
    warnings(document, "amd64")
    assert document == before


def test_a_bad_configuration_is_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match=r"spec\.configuration"):
        validate(vmi(), "amd64", {"developerConfiguration": []})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_answered(document: Any) -> None:
    causes = validate(document, "amd64")
    assert all(isinstance(cause, Cause) for cause in causes)
    assert causes, "nothing that has no spec is valid"
    assert warnings(document, "amd64") == []


def _samples(field: model.FieldType) -> st.SearchStrategy[Any]:
    """Values of a field's own type, good or odd, so that the rules are reached."""
    if field.containers:
        inner = st.deferred(lambda: _samples(field.element()))
        if field.containers[0] == "[]":
            return st.lists(inner, max_size=2)
        keys = st.sampled_from(["memory", "cpu", "a/b"])
        return st.dictionaries(keys, inner, max_size=2)
    if field.name in model.TYPES:
        return st.deferred(lambda: _objects(field.name))
    if field.name in model.INTEGERS:
        low, high = model.INTEGERS[field.name]
        return st.sampled_from([0, 1, 2, 512, high, low])
    if field.name in model.ENUMS:
        return st.sampled_from(model.ENUMS[field.name])
    texts = ["", "a", "b", "virtio", "sata", "Q", "\x01", "0000:00:00.0", "q35", "/", "In", "2Mi", "10.0.0.1"]
    by_name: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "quantity": st.sampled_from(["0", "-1", "1Mi", "3Gi", "1500m", 7, "9E", "99999999E"]),
        "time": st.just("2026-01-31T12:00:00Z"),
        "string": st.sampled_from(texts),
    }
    return by_name.get(field.name, st.sampled_from(["a", 1]))


def _objects(name: str) -> st.SearchStrategy[dict[str, Any]]:
    fields = model.fields(name)
    needed = {key: _samples(field) for key, field in fields.items() if field.required}
    more = {key: _samples(field) for key, field in fields.items() if not field.required}
    return st.fixed_dictionaries(needed, optional=more)


CHECKS: list[Callable[..., list[Cause]]] = [validate, warnings]


@given(_objects("VirtualMachineInstanceSpec"), st.sampled_from(["amd64", "arm64", "s390x", ""]))
def test_any_spec_of_the_right_types_is_judged(spec: dict[str, Any], architecture: str) -> None:
    document = {"spec": spec}
    for check in CHECKS:
        for cause in check(document, architecture):
            assert cause.reason != WRONG
            assert str(cause).isprintable()
