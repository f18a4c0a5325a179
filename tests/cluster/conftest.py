"""Fixtures of the cluster tool's own tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.fixtures import control_plane, two_nodes

__all__ = ["control_plane", "two_nodes"]


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker."""
    config.addinivalue_line(
        "markers", "cluster: needs a real API server, built the first time (make cluster)"
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for clusters that no other test sees."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "kvnode" / "cluster"
