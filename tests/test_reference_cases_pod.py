"""The reference's pods of a few readable instances, in one cluster: ``reference_cases/pod/config.yaml``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvnode.spec.pod import render_launcher_pod

CASES = Path(__file__).parent / "reference_cases" / "pod"
CONFIG = yaml.safe_load((CASES / "config.yaml").read_text())
FILES = sorted(file for file in CASES.glob("*.yaml") if file.stem != "config")


def without_empty(value: Any) -> Any:
    """In pods null, "", {}, [] and absent say the same."""
    if isinstance(value, dict):
        members = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in members.items() if item not in (None, "", {}, [])}
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    return value


def test_the_cases_are_there() -> None:
    assert len(FILES) >= 12


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_pod(file: Path) -> None:
    case = yaml.safe_load(file.read_text())
    got = render_launcher_pod(case["vmi"], case["architecture"], CONFIG, case["pvcs"])
    command = got["spec"]["containers"][0]["command"]
    timeout = command.index("--qemu-timeout") + 1
    assert re.fullmatch(r"2[4-9]\ds|3[0-5]\ds", command[timeout])
    command[timeout] = "random"
    assert without_empty(got) == without_empty(case["pod"])
