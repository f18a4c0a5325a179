"""The nodes' cgroup roots: the only thing of a cluster that belongs to no namespace."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.plan import Plan

ROOT = Path("/sys/fs/cgroup")


def unified() -> bool:
    """Whether the machine has cgroup v2 alone."""
    return (ROOT / "cgroup.controllers").exists()


def _hierarchies() -> list[Path]:
    if unified():
        return [ROOT]
    return [path for path in ROOT.iterdir() if path.is_dir() and not path.is_symlink()]


def make(plan: Plan) -> None:
    """Make every node's root in every hierarchy."""
    for hierarchy in _hierarchies():
        if unified():
            controllers = (ROOT / "cgroup.controllers").read_text().split()
            (ROOT / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))
        for node in plan.node_names:
            root = hierarchy / plan.cgroup(node)
            root.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (
                    not unified() and (root / name).exists()
                ):  # empty in a new v1 group, where nothing may then run
                    (root / name).write_text((hierarchy / name).read_text())


def remove(plan: Plan) -> None:
    """Remove the nodes' roots; what still runs in them is killed."""
    for hierarchy in _hierarchies():
        for node in plan.node_names:
            _remove_tree(hierarchy / plan.cgroup(node))


def _remove_tree(root: Path) -> None:
    for _ in range(50):
        if not root.exists():
            return
        for group in _bottom_up(root):
            for pid in _pids(group):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                group.rmdir()
            except OSError:
                continue
        time.sleep(0.05)


def _pids(group: Path) -> list[int]:
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split() if int(pid)]
    except OSError:
        return []


def _bottom_up(root: Path) -> Iterator[Path]:
    for path, _, _ in os.walk(root, topdown=False):
        yield Path(path)
