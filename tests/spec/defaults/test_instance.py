"""Defaulting as a whole: what it promises whatever it is given."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.spec.config import ClusterConfig
from kvnode.spec.defaults import DefaultingError, apply_defaults
from kvnode.spec.model import ENUMS, INTEGERS, TYPES, FieldType, fields

ARCHITECTURES = st.sampled_from(["amd64", "arm64", "s390x", "riscv64"])
QUANTITIES = st.sampled_from(["0", "1", "250m", "2Gi", "1.5Gi", "4096Mi", "-1", "8Ei", "1025Mi", 3, 0.5])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)


def values(kind: FieldType) -> st.SearchStrategy[Any]:
    """Values of a field as the API declares it."""
    if kind.containers:
        inner = values(kind.element())
        if kind.containers[0] == "[]":
            return st.lists(inner, max_size=2)
        return st.dictionaries(st.sampled_from(["cpu", "memory", "a"]), inner, max_size=3)
    if kind.name in TYPES:
        return instances(kind.name)
    if kind.name in INTEGERS:
        low, high = INTEGERS[kind.name]
        return st.integers(max(low, -2), min(high, 6)) | st.sampled_from([low, high])
    scalars: dict[str, st.SearchStrategy[Any]] = {
        "any": ANYTHING,
        "bool": st.booleans(),
        "intOrString": st.integers(0, 9) | st.just("a"),
        "number": st.floats(allow_nan=False),
        "quantity": QUANTITIES,
    }
    return scalars.get(kind.name, st.sampled_from(["", "a", "1Gi", "q35"]))


def instances(type_name: str) -> st.SearchStrategy[Any]:
    members = {name: st.deferred(lambda kind=kind: values(kind)) for name, kind in fields(type_name).items()}
    return st.fixed_dictionaries({}, optional=members)


VMIS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": st.just("vm"), "namespace": st.just("ns")}),
        "spec": st.fixed_dictionaries(
            {"domain": instances("DomainSpec")},
            optional={
                "volumes": st.lists(instances("Volume"), max_size=2),
                "networks": st.lists(instances("Network"), max_size=1),
                "livenessProbe": instances("Probe"),
                "evictionStrategy": st.just("LiveMigrate"),
            },
        ),
    }
)


@given(VMIS, ARCHITECTURES)
def test_a_valid_instance_is_defaulted_once_and_for_all(vmi: dict[str, Any], architecture: str) -> None:
    before = copy.deepcopy(vmi)
    made = apply_defaults(vmi, architecture)
    assert vmi == before
    assert apply_defaults(made, architecture) == made


@given(VMIS, ARCHITECTURES, ANYTHING, st.data())
def test_anything_anywhere_is_defaulted_or_named(
    vmi: dict[str, Any], architecture: str, anything: Any, data: st.DataObject
) -> None:
    """Put any JSON in the place of any value of an instance."""
    place: Any = vmi
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not (isinstance(place[key], (dict, list)) and place[key] and data.draw(st.booleans())):
            break
        place = place[key]
    place[key] = anything
    before = copy.deepcopy(vmi)
    try:
        made = apply_defaults(vmi, architecture)
    except DefaultingError as error:
        named = error.field
    else:
        named = "spec"
        assert json.dumps(apply_defaults(made, architecture)) == json.dumps(made)
    assert named.startswith(("spec", "metadata"))
    assert json.dumps(vmi) == json.dumps(before)


@given(ANYTHING)
def test_any_document_is_defaulted_or_refused(document: Any) -> None:
    try:
        made = apply_defaults(document, "amd64")
    except DefaultingError:
        return
    assert made["spec"]["domain"]["machine"] == {"type": "q35"}


def test_the_smallest_instance() -> None:
    made = apply_defaults({}, "amd64")
    uuid = made["spec"]["domain"]["firmware"].pop("uuid")
    assert len(uuid) == 36
    assert made == {
        "metadata": {"annotations": {"kubevirt.io/pci-topology-version": "v3"}},
        "spec": {
            "architecture": "amd64",
            "domain": {
                "cpu": {"cores": 1, "maxSockets": 4, "model": "host-model", "sockets": 1, "threads": 1},
                "devices": {"interfaces": [{"name": "default", "bridge": {}}]},
                "features": {"acpi": {"enabled": True}},
                "firmware": {},
                "machine": {"type": "q35"},
                "memory": {},
                "resources": {},
            },
            "evictionStrategy": "None",
            "networks": [{"name": "default", "pod": {}}],
        },
        "status": {"currentCPUTopology": {"cores": 1, "sockets": 1, "threads": 1}, "runtimeUser": 107},
    }


def test_each_instance_gets_a_uuid_of_its_own() -> None:
    uuids = {apply_defaults({}, "amd64")["spec"]["domain"]["firmware"]["uuid"] for _ in range(3)}
    assert len(uuids) == 3


def test_the_instance_s_architecture_wins() -> None:
    vmi = {"spec": {"architecture": "s390x", "domain": {}}}
    made = apply_defaults(vmi, "amd64")
    assert made["spec"]["domain"]["machine"]["type"] == "s390-ccw-virtio"
    assert "annotations" not in made["metadata"]


def test_status_records_what_hotplug_compares_with() -> None:
    memory = {"guestAtBoot": "1Gi", "guestCurrent": "1Gi", "guestRequested": "1Gi"}
    vmi = {"spec": {"domain": {"memory": {"guest": "1024Mi"}, "cpu": {"cores": 2}}}}
    made = apply_defaults(vmi, "arm64")
    assert made["status"]["memory"] == memory
    assert made["status"]["currentCPUTopology"] == {"cores": 2}
    assert "maxSockets" not in made["spec"]["domain"]["cpu"]


def test_without_live_update_no_room_is_made() -> None:
    vmi = {"spec": {"domain": {"memory": {"guest": "2Gi"}}}}
    made = apply_defaults(vmi, "amd64", {"vmRolloutStrategy": "Stage"})["spec"]["domain"]
    assert "maxSockets" not in made["cpu"]
    assert "maxGuest" not in made["memory"]


def test_the_root_gate_keeps_root() -> None:
    config = ClusterConfig.from_mapping({"developerConfiguration": {"featureGates": ["Root"]}})
    assert apply_defaults({}, "amd64", config)["status"]["runtimeUser"] == 0


@pytest.mark.parametrize(
    ("path", "annotation"), [(None, "/var/run/tdx-qgs/qgs.socket"), ("/q", "/q"), ("", None)]
)
def test_the_quote_socket_of_tdx(path: str | None, annotation: str | None) -> None:
    attestation = {} if path is None else {"qgsSocketPath": path}
    made = apply_defaults(
        {"spec": {"domain": {"launchSecurity": {"tdx": {}}}}},
        "amd64",
        {"confidentialCompute": {"tdx": {"attestation": attestation}}},
    )
    assert made["metadata"]["annotations"].get("kubevirt.io/qgs-socket-path") == annotation


def test_the_pci_topology_of_an_older_vm_stays() -> None:
    vmi = {"metadata": {"annotations": {"kubevirt.io/pci-topology-version": "v2"}}}
    assert apply_defaults(vmi, "amd64")["metadata"] == vmi["metadata"]


def test_unknown_fields_are_kept_for_validation_to_report() -> None:
    vmi = {"spec": {"domain": {"devices": {"disk": [{"a": None}]}, "features": {"hyperv": {"what": 1}}}}}
    made = apply_defaults(vmi, "amd64")["spec"]["domain"]
    assert made["devices"]["disk"] == [{"a": None}]
    assert made["features"]["hyperv"] == {"what": 1}


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("vmi", "field", "message"),
    [
        (None, "", "must be a mapping (a VirtualMachineInstance), not null"),
        ([], "", "must be a mapping (a VirtualMachineInstance), not a list"),
        ({"spec": "x"}, "spec", "must be a mapping, not a string"),
        ({"spec": {"domain": {"cpu": 4}}}, "spec.domain.cpu", "must be a mapping, not a number"),
        (
            {"spec": {"domain": {"cpu": {"cores": "4"}}}},
            "spec.domain.cpu.cores",
            "must be a whole number, not a string",
        ),
        (
            {"spec": {"domain": {"cpu": {"cores": -1}}}},
            "spec.domain.cpu.cores",
            "must be a whole number from 0 to 4294967295",
        ),
        ({"spec": {"volumes": {"name": "a"}}}, "spec.volumes", "must be a list, not a mapping"),
        ({"spec": {"volumes": [None]}}, "spec.volumes[0]", "must be a mapping, not null"),
        (
            {"spec": {"domain": {"devices": {"disks": [{"name": True}]}}}},
            "spec.domain.devices.disks[0].name",
            "must be a string, not a boolean",
        ),
        (
            {"spec": {"domain": {"devices": {"autoattachPodInterface": "no"}}}},
            "spec.domain.devices.autoattachPodInterface",
            "must be true or false, not a string",
        ),
        (
            {"spec": {"domain": {"resources": {"requests": {"memory": "1gb"}}}}},
            "spec.domain.resources.requests.memory",
            "'1gb' is not a quantity: write a number such as 2, 0.5, 500m, 1Gi or 1e3",
        ),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels.a", "must be a string, not a number"),
        ({"spec": {"oops": deep(100_000)}}, "spec.oops", "is nested deeper than 64 levels"),
    ],
)
def test_what_is_wrong_is_named(vmi: Any, field: str, message: str) -> None:
    with pytest.raises(DefaultingError) as refusal:
        apply_defaults(vmi, "amd64")
    assert (refusal.value.field, refusal.value.message) == (field, message)
    assert isinstance(refusal.value, ValueError)


def test_keys_that_are_no_strings() -> None:
    with pytest.raises(DefaultingError) as refusal:
        apply_defaults({"metadata": {"labels": {1: "a"}}}, "amd64")
    assert refusal.value.field == "metadata.labels"
    with pytest.raises(DefaultingError) as refusal:
        apply_defaults({"metadata": {"labels": {"a\nb": 1}}}, "amd64")
    assert "\n" not in str(refusal.value)


def test_a_bad_configuration_is_named() -> None:
    with pytest.raises(DefaultingError) as refusal:
        apply_defaults({}, "amd64", {"cpuModel": 5})
    assert refusal.value.field == "spec.configuration.cpuModel"


def test_an_architecture_is_a_string() -> None:
    with pytest.raises(DefaultingError) as refusal:
        apply_defaults({}, None)  # type: ignore[arg-type]
    assert refusal.value.field == "architecture"


def test_every_enumeration_is_read_as_a_string() -> None:
    assert ENUMS
    with pytest.raises(DefaultingError) as refusal:
        apply_defaults({"spec": {"dnsPolicy": 1}}, "amd64")
    assert refusal.value.field == "spec.dnsPolicy"
