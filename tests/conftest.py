"""Fixtures that tests of more than one package use."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tools.guest.build import build

# The machines that run this are shared and slow at times: an example's time says nothing about the code. Nor does a
# run that happens to draw much that is thrown away.
UNHEALTHY = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
settings.register_profile("kvnode", deadline=None, suppress_health_check=UNHEALTHY)
settings.register_profile("thorough", settings.get_profile("kvnode"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "kvnode"))


def pytest_configure() -> None:
    """Let interrupts count for the programs that tests start: a shell starts what runs behind it with them ignored."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Several test processes (``-n``) share out files; files that use one cluster of nodes stay together."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - not there without `-n`'s plugin

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "nodes" if file.startswith(NODES) else file

    return Files(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--regenerate``: write anew what tests compare with and the project itself makes."""
    parser.addoption(
        "--regenerate", action="store_true", help="write expected files anew from what the code gives"
    )


NODES = ("tests/e2e/", "tests/cluster/test_two_nodes.py")
"""Files whose tests share clusters of nodes, which take a minute to bring up."""


@dataclass(frozen=True)
class Guest:
    """Files of the demo guest; ``disk`` and ``qcow2`` are to be copied before a VM writes to them."""

    directory: Path
    kernel: Path
    initrd: Path
    disk: Path
    qcow2: Path


@pytest.fixture(scope="session")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """The demo guest, out of the cache or built now (up to a minute, from Debian packages)."""
    directory = build(tmp_path_factory.mktemp("guest"), lambda line: print(f"guest: {line}", file=sys.stderr))
    return Guest(
        directory,
        kernel=directory / "vmlinuz",
        initrd=directory / "initrd.gz",
        disk=directory / "disk.raw",
        qcow2=directory / "disk.qcow2",
    )
