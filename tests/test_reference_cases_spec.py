"""The reference's answers for a few readable cases of defaulting, overhead and quantities."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvnode.api.quantity import Quantity
from kvnode.spec.defaults import apply_defaults
from kvnode.spec.overhead import memory_overhead

CASES = Path(__file__).parent / "reference_cases"
QUANTITIES = yaml.safe_load((CASES / "quantities.yaml").read_text())


def cases(group: str) -> list[Any]:
    files = sorted((CASES / group).glob("*.yaml"))
    assert len(files) >= 12
    return [pytest.param(yaml.safe_load(file.read_text()), id=file.stem) for file in files]


def without_empty(value: Any) -> Any:
    """In defaulted VMIs null, "", {}, [] and absent say the same."""
    if isinstance(value, dict):
        members = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in members.items() if item not in (None, "", {}, [])}
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    return value


@pytest.mark.parametrize("case", cases("defaults"))
def test_defaults(case: dict[str, Any]) -> None:
    got = without_empty(apply_defaults(case["vmi"], case["architecture"]))
    firmware = got["spec"]["domain"]["firmware"]
    if case["expect"]["spec"]["domain"]["firmware"]["uuid"] == "random":
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", firmware["uuid"])
        firmware["uuid"] = "random"
    assert got == without_empty(case["expect"])


@pytest.mark.parametrize("case", cases("overhead"))
def test_overhead(case: dict[str, Any]) -> None:
    assert memory_overhead(case["vmi"], case["architecture"], case.get("ratio")) == case["bytes"]


@pytest.mark.parametrize("case", QUANTITIES, ids=[repr(case["text"]) for case in QUANTITIES])
def test_quantity(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(ValueError, match="is not a quantity"):
            Quantity(case["text"])
        return
    quantity = Quantity(case["text"])
    assert (quantity.value, str(quantity)) == (case["bytes"], case["text_out"])
    assert quantity.milli_value == case.get("milli", quantity.milli_value)
