"""Fixtures of the agent's tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.fixtures import control_plane, namespace

__all__ = ["control_plane", "namespace"]


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker."""
    config.addinivalue_line(
        "markers", "cluster: needs a real API server, built the first time (make cluster)"
    )


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose name leaves room for sockets."""
    with tempfile.TemporaryDirectory(prefix="kv") as folder:
        yield Path(folder)
