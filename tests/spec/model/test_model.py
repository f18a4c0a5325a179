"""The model is whole in itself, and walks end."""

from __future__ import annotations

import pytest

from kvnode.spec import model
from kvnode.spec.model.notation import FieldType


def test_every_type_that_is_named_is_there() -> None:
    for name in model.TYPES:
        for field in model.fields(name).values():
            assert field.name in model.SCALARS or field.name in model.ENUMS or field.name in model.TYPES


def test_every_type_and_enumeration_is_used() -> None:
    roots = ("VirtualMachineInstance", "VirtualMachine")
    used = {field.name for root in roots for _, field in model.walk(root)}
    assert {*model.TYPES, *model.ENUMS} <= used | set(roots)


@pytest.mark.parametrize(
    ("notation", "expected"),
    [
        ("bool", FieldType("bool", (), False)),
        ("string!", FieldType("string", (), True)),
        ("[]Disk", FieldType("Disk", ("[]",), False)),
        ("{}[]quantity!", FieldType("quantity", ("{}", "[]"), True)),
    ],
)
def test_notation(notation: str, expected: FieldType) -> None:
    assert FieldType.parse(notation) == expected


def test_an_element_has_one_container_less() -> None:
    assert FieldType.parse("{}[]string!").element() == FieldType.parse("[]string")


def test_walk() -> None:
    paths = dict(model.walk("VirtualMachineInstance"))
    assert paths["spec.domain.devices.disks[].disk.bus"].name == "string"
    assert paths["spec.domain.resources.limits"].containers == ("{}",)
    assert paths["spec.volumes[].persistentVolumeClaim.claimName"].required
    assert paths["status.volumeStatus[].persistentVolumeClaimInfo.capacity"].name == "quantity"


def test_a_machine_holds_an_instance() -> None:
    machine = {path for path, _ in model.walk("VirtualMachine")}
    spec = {path for path, _ in model.walk("VirtualMachineInstanceSpec")}
    assert {f"spec.template.spec.{path}" for path in spec} <= machine
    assert "spec.dataVolumeTemplates[].spec.source.http.url" in machine


def test_an_unknown_type() -> None:
    with pytest.raises(KeyError):
        model.fields("Nonesuch")
