"""``python -m bench.launcher_pod OPTIONS``: the tests' pod, which writes down where each Sync's time went.

A line of JSON a Sync, in ``/run/times.jsonl``: seconds in all, and seconds that were spent in libvirt (QEMU's start
among them) and in programs such as qemu-img.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import libvirt

from kvnode.launcher.manager.manager import Manager
from tests.launcher.manager.pod_main import main

TIMES = Path("/run/times.jsonl")
_spent = {"libvirt": 0.0, "programs": 0.0}
_inside = threading.local()


def timed(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its time added to what that kind has spent; calls within calls count once."""

    def call(*arguments: Any, **named: Any) -> Any:
        if getattr(_inside, "now", False):
            return function(*arguments, **named)
        _inside.now = True
        start = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            _spent[kind] += time.perf_counter() - start
            _inside.now = False

    return call


def patch() -> None:
    """Time libvirt's calls, programs, and Syncs."""
    for owner in (libvirt.virConnect, libvirt.virDomain):
        for name, method in list(vars(owner).items()):
            if not name.startswith("_") and callable(method):
                setattr(owner, name, timed("libvirt", method))
    subprocess.run = timed("programs", subprocess.run)  # type: ignore[assignment]
    sync = Manager.sync

    async def measured(self: Manager, *arguments: Any) -> None:
        _spent.update(libvirt=0.0, programs=0.0)
        start = time.perf_counter()
        await sync(self, *arguments)
        total = time.perf_counter() - start
        with TIMES.open("a") as file:
            file.write(json.dumps({"total": total, **_spent}) + "\n")

    Manager.sync = measured  # type: ignore[method-assign]


if __name__ == "__main__":
    patch()
    main()
