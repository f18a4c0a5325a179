"""A VirtualMachine's instance."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.api.errors import FieldError
from kvnode.spec.machine import instance_of


def machine(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubevirt.io/v1alpha3",
        "kind": "VirtualMachine",
        "metadata": {"name": "outer", "namespace": "team", "labels": {"of": "the machine"}},
        "spec": {
            "runStrategy": "Always",
            "template": {
                "metadata": {
                    "name": "inner",
                    "namespace": "no",
                    "generateName": "no-",
                    "labels": {"app": "web"},
                },
                "spec": {"domain": {"devices": {}}},
            },
        },
        **changes,
    }


def test_it_is_the_template_under_the_machines_name() -> None:
    assert instance_of(machine()) == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "outer", "namespace": "team", "labels": {"app": "web"}},
        "spec": {"domain": {"devices": {}}},
    }


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {}),
        ({"name": None, "namespace": "team"}, {"namespace": "team"}),
        ({"generateName": "web-"}, {"generateName": "web-"}),
        ({"generateName": "web-", "name": "web-1"}, {"name": "web-1"}),
    ],
)
def test_names_are_the_machines_alone(own: dict[str, Any], expected: dict[str, Any]) -> None:
    assert instance_of(machine(metadata=own))["metadata"] == {**expected, "labels": {"app": "web"}}


def test_nothing_is_shared() -> None:
    source = machine()
    before = copy.deepcopy(source)
    made = instance_of(source)
    made["spec"]["domain"]["devices"]["disks"] = []
    made["metadata"]["labels"]["app"] = "other"
    assert source == before


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"spec": 5}, "spec: must be an object"),
        ({"spec": None}, "spec.template: must be an object: the instance to run"),
        ({"spec": {"template": []}}, "spec.template: must be an object: the instance to run"),
        ({"spec": {"template": {"spec": None}}}, "spec.template.spec: must be an object"),
        ({"spec": {"template": {"spec": {}, "metadata": [1]}}}, "spec.template.metadata: must be an object"),
        ({"metadata": "web"}, "metadata: must be an object"),
    ],
)
def test_what_is_no_machine(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(FieldError) as caught:
        instance_of(machine(**changes))
    assert str(caught.value) == line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["spec", "template", "metadata", "name", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["spec", "metadata"]), JSON))
def test_any_json_gives_an_instance_or_an_error(source: dict[str, Any]) -> None:
    with suppress(FieldError):
        assert instance_of(source)["spec"] == source["spec"]["template"]["spec"]
