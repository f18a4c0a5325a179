"""What the tests of launcher pods share."""

from __future__ import annotations

import pathlib

import pytest


@pytest.fixture(scope="session")
def libvirt_cache(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """libvirt's cache: probing QEMU anew for every pod would take a second or two each."""
    return tmp_path_factory.mktemp("libvirt-cache")
