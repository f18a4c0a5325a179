"""Whether the controllers keep their figures, in small: ``pytest bench/test_controller.py`` on an idle machine.

The whole is `make bench-controller`.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Iterator

import pytest

from bench.controller_load import Run, measure
from tests.cluster.cluster import up

VMS, RESTARTS = 100, 10
#: Most calls a VM, seconds of a VM's status behind its VMI, seconds from a guest's failure to the next VMI, and MiB.
CALLS, LAG, RESTART, RESIDENT = 13.0, 5.0, 0.10, 150.0


@pytest.fixture(scope="module", params=[False, True], ids=["", "webhooks"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """A run with these VMs."""
    cluster = up(lambda line: print(line, file=sys.stderr), audit=True)
    try:
        made = Run(VMS, request.param)
        asyncio.run(measure(cluster, made, RESTARTS))
        yield made
    finally:
        cluster.down()


def test_calls(run: Run) -> None:
    assert run.calls_a_vm <= CALLS, run.calls
    assert run.refused == {}
    assert run.twice == 0


def test_status(run: Run) -> None:
    assert run.lag <= LAG


def test_restart(run: Run) -> None:
    assert statistics.median(run.restart) <= RESTART, (run.restart, run.parts)


def test_resident(run: Run) -> None:
    assert run.resident <= RESIDENT
