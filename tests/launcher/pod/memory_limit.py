"""A memory limit for a launcher pod, under either version of cgroups."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.launcher.pod.pod import Pod

_ROOT = Path("/sys/fs/cgroup")


@dataclass
class Group:
    """One cgroup with the memory controller."""

    path: Path
    unified: bool

    def add(self, pod: Pod) -> None:
        """Put all of the pod's processes in; those that they start are in it too."""
        for pid in pod.pids().values():
            (self.path / "cgroup.procs").write_text(str(pid))

    def leave(self, spare: int) -> None:
        """Leave ``spare`` bytes beside what is used now."""
        usage = self.path / ("memory.current" if self.unified else "memory.usage_in_bytes")
        limit = self.path / ("memory.max" if self.unified else "memory.limit_in_bytes")
        limit.write_text(str(int(usage.read_text()) + spare))


@contextlib.contextmanager
def memory_group(name: str) -> Iterator[Group]:
    """Make a group; it is removed when its processes have ended."""
    unified = (_ROOT / "cgroup.controllers").exists()
    group = Group(_ROOT / name if unified else _ROOT / "memory" / name, unified)
    if unified:
        (_ROOT / "cgroup.subtree_control").write_text("+memory")
    group.path.mkdir()
    try:
        yield group
    finally:
        until = time.monotonic() + 120
        while True:
            try:
                group.path.rmdir()
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
