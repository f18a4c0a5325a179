"""The examples of docs/explain.md run, and its table names the rules there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kvnode.provenance.explanation import MOST_VALUES
from kvnode.provenance.live import RULES

TEXT = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str) -> None:
    exec(compile(example, "docs/explain.md", "exec"), {})  # noqa: S102 - our own


def test_every_rule_is_in_the_table() -> None:
    for rule in RULES:
        for field in rule.fields:
            assert f"`{field.removeprefix('spec.').removeprefix('domain.')}`" in TEXT
    assert f"more than {MOST_VALUES} are refused" in TEXT
