"""A runner whose VMs are ended after the test, whatever became of it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvnode.standalone.runner import Runner, StartOptions
from tests.conftest import Guest
from tests.standalone.helpers import START_SECONDS, mounts_below


@pytest.fixture
def state_dir() -> Iterator[Path]:
    """A state directory with a short path, as sockets lie in it."""
    path = Path(tempfile.mkdtemp(prefix="kvnode-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def runner(state_dir: Path) -> Iterator[Runner]:
    """A runner; nothing of its VMs is left when the test has ended."""
    made = Runner(state_dir)
    yield made
    for vm in made.list_vms(ended=False):
        made.stop(f"{vm.namespace}/{vm.name}", now=True)
    assert mounts_below(state_dir) == []


@pytest.fixture
def kernel(guest: Guest) -> StartOptions:
    """Options to start a VM of :func:`tests.standalone.helpers.kernel_vmi`."""
    return StartOptions(images={"kernel-boot": guest.directory}, timeout=START_SECONDS)
