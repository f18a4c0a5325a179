"""Every field of the API either changes the domain, shown by a conversion, or is listed with the reason why not.

For a field, VMIs are converted with and without it and with several values: those of the reference cases, and some
made for what those leave out.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kvnode
from kvnode.spec.model import ENUMS, INTEGERS, TYPES, FieldType, walk
from kvnode.spec.unsupported import NOT_IN_DOMAIN, reason
from tests.converter.situations import REFERENCES, SITUATIONS, VALUES
from tests.documents import with_table
from tests.test_reference_cases_convert import NAMES, load

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/fields.md"
ROOT = "VirtualMachineInstance"
LEAVES = {path: field for path, field in walk(ROOT) if not TYPES.get(field.name)}

Sample = tuple[dict[str, Any], kvnode.ConverterContext]


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """VMIs with their contexts."""
    committed = [(vmi, kvnode.ConverterContext(context)) for vmi, context in map(load, NAMES)]
    return [*((vmi, kvnode.ConverterContext(context)) for vmi, context in SITUATIONS), *committed]


@pytest.mark.parametrize("path", [path for path in LEAVES if reason(path) is None])
def test_a_field_changes_the_domain(path: str, samples: list[Sample]) -> None:
    evidence = "refused" if path in REFERENCES else "converted"
    assert any(changes(path, sample, evidence) for sample in samples), (
        "no conversion shows it: map it, add a situation that shows it, or give it a reason in unsupported.py"
    )


def test_fields_with_a_reason_do_not_change_the_domain(samples: list[Sample]) -> None:
    changing = [
        path
        for path in LEAVES
        if reason(path) is not None and any(changes(path, sample, "converted") for sample in samples)
    ]
    assert changing == []


def test_every_reason_is_of_a_field() -> None:
    paths = {path for path, _ in walk(ROOT)}
    assert set(NOT_IN_DOMAIN) - paths == set()
    below = [path for path in NOT_IN_DOMAIN if reason(path.rpartition(".")[0]) is not None]
    assert below == [], "the entry above says it already"
    assert all(text and not text.endswith(".") for text in NOT_IN_DOMAIN.values())


def test_reasons_hold_below_a_path_alone() -> None:
    assert reason("spec.affinity.nodeAffinity") == reason("spec.affinity") is not None
    assert reason("metadata.ownerReferences[].name") == reason("metadata.ownerReferences")
    assert reason("spec.domain.devices.disks[].name") is None
    assert reason("spec") is None


def test_the_reasons_are_in_the_documentation(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--regenerate"):
        DOCUMENT.write_text(with_table(DOCUMENT.read_text(), reasons_table()))
    assert with_table(DOCUMENT.read_text(), reasons_table()) == DOCUMENT.read_text(), (
        "run pytest --regenerate"
    )


def reasons_table() -> str:
    """The reasons with their fields, in Markdown."""
    fields: dict[str, list[str]] = {}
    for path, text in NOT_IN_DOMAIN.items():
        fields.setdefault(text, []).append(f"`{path}`")
    rows = (f"| {text}. | {', '.join(paths)} |" for text, paths in fields.items())
    return "\n".join(["| Why no domain shows it | Fields |", "|---|---|", *rows])


def changes(path: str, sample: Sample, evidence: str) -> bool:
    """Tell whether the field's values make different domains of a sample, or some of them none at all."""
    vmi, context = sample
    *above, key = path.split(".")
    document = copy.deepcopy(vmi)
    for parent in parents(document, above):
        before = parent.pop(key, None)
        results = {converted(document, context)}
        for value in values(path, key, before):
            parent[key] = value
            results.add(converted(document, context))
        parent.pop(key, None)
        if before is not None:
            parent[key] = before
        enough = results if evidence == "refused" and results != {b""} else results - {b""}
        if len(enough) > 1:
            return True
    return False


def parents(value: Any, steps: list[str]) -> Iterator[dict[str, Any]]:
    """The objects at a path, made where there are none."""
    if not isinstance(value, dict):
        return
    if not steps:
        yield value
        return
    step, *rest = steps
    name = step.removesuffix("[]")
    if name == step:
        if value.get(name) is None:
            value[name] = {}
        yield from parents(value[name], rest)
        return
    if not value.get(name):
        value[name] = [{}]
    for item in value[name][:6]:
        yield from parents(item, rest)


def values(path: str, key: str, before: Any) -> list[Any]:
    """Values of the field's type, the one that is there among them."""
    found = list(VALUES.get(path) or VALUES.get(key) or plain_values(LEAVES[path]))
    return found if before is None or before in found else [*found, before]


def plain_values(field: FieldType) -> list[Any]:
    if field.name in TYPES:
        found: list[Any] = [{}]
    elif field.name == "bool":
        found = [True, False]
    elif field.name in INTEGERS:
        found = [1, 2, 3, 4096]
    elif field.name == "quantity":
        found = ["64Mi", "2Gi"]
    else:
        found = list(ENUMS.get(field.name, ("some", "other")))
    for container in reversed(field.containers):
        found = [[value] for value in found] if container == "[]" else [{"some": value} for value in found]
    return found


def converted(vmi: dict[str, Any], context: kvnode.ConverterContext) -> bytes:
    """The domain, or nothing when the VMI is refused."""
    try:
        return kvnode.convert(json.dumps(vmi).encode(), context)
    except kvnode.ConversionError:
        return b""
