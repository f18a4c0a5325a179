"""Tests that hold the right answer to what a user reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])


def report(*names: str) -> Callable[[Test], Test]:
    """Run a test once for each, with the report's number in its id; it need not take it (``reported``)."""

    def mark(test: Test) -> Test:
        marked: Test = pytest.mark.parametrize("reported", names)(test)
        return pytest.mark.usefixtures("reported")(marked)

    return mark
