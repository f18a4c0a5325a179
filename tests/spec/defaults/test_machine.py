"""What a VirtualMachine's template is given, and what it is not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.spec.defaults import DefaultingError, apply_machine_defaults

VM: dict[str, Any] = {"spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}}}}}}


@pytest.mark.parametrize(
    ("config", "machine"),
    [
        (None, "q35"),
        ({"machineType": "pc-q35-9.0"}, "pc-q35-9.0"),
        ({"architectureConfiguration": {"amd64": {"machineType": "q35-x"}}}, "q35-x"),
    ],
)
def test_the_machine_type_is_the_cluster_s(config: dict[str, Any] | None, machine: str) -> None:
    made = apply_machine_defaults(VM, "amd64", config)
    assert made["spec"]["template"]["spec"]["domain"]["machine"] == {"type": machine}


@pytest.mark.parametrize(("architecture", "versioned"), [("amd64", True), ("arm64", True), ("s390x", False)])
def test_the_pci_topology_has_a_version_where_devices_are_plugged(architecture: str, versioned: bool) -> None:
    made = apply_machine_defaults(VM, architecture)
    assert ("metadata" in made["spec"]["template"]) == versioned


@pytest.mark.parametrize(
    ("vm", "field"),
    [
        ([], ""),
        ({}, "spec.template"),
        ({"spec": {"template": None}}, "spec.template"),
        ({"spec": {"template": {"spec": 1}}}, "spec.template.spec"),
        ({"spec": {"template": {"spec": {"domain": []}}}}, "spec.template.spec.domain"),
        ({"spec": {"template": {"spec": {"architecture": 1}}}}, "spec.template.spec.architecture"),
        (
            {"spec": {"template": {"spec": {"domain": {"firmware": {"uuid": 1}}}}}},
            "spec.template.spec.domain.firmware.uuid",
        ),
    ],
)
def test_the_field_at_fault_is_named(vm: Any, field: str) -> None:
    with pytest.raises(DefaultingError) as error:
        apply_machine_defaults(vm, "amd64")
    assert error.value.field == field


NAMES = st.sampled_from(
    ["architecture", "domain", "machine", "type", "firmware", "uuid", "serial", "metadata"]
)
VALUES = st.recursive(
    st.none() | st.integers() | st.sampled_from(["", "q35", "x"]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=2),
)


@given(st.dictionaries(NAMES, VALUES), st.booleans())
def test_the_caller_s_machine_is_left_alone_and_a_second_time_changes_nothing(
    spec: dict[str, Any], creating: bool
) -> None:
    vm = {"spec": {"template": {"spec": spec}}}
    before = copy.deepcopy(vm)
    try:
        made = apply_machine_defaults(vm, "amd64", creating=creating)
    except DefaultingError:
        assert vm == before
        return
    assert vm == before
    assert apply_machine_defaults(made, "arm64", creating=creating) == made
