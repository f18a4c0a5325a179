"""The reference's verdict on a few readable VMIs: shrunk until one thing is wrong with each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kvnode.spec.validation import validate

FILES = sorted((Path(__file__).parent / "reference_cases" / "validate").glob("*.yaml"))


def test_the_sample_is_there() -> None:
    assert len(FILES) >= 25
    assert sum(file.stem.startswith("valid-") for file in FILES) == 3


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_verdict(file: Path) -> None:
    case: dict[str, Any] = yaml.safe_load(file.read_text())
    causes = validate(case["vmi"], case["architecture"])
    assert sorted({cause.field for cause in causes}) == case["fields"]
