"""Whether the kernel killed for want of memory, as the container's cgroup counts it.

A process that is killed so ends like one that somebody killed: SIGKILL, and nothing said. The count of the cgroup
(``oom_kill``, cgroups(7) and the kernel's admin-guide/cgroup-v2) tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

OUT_OF_MEMORY = (
    "QEMU was killed: out of memory; the container's memory limit leaves too little beside the guest's memory"
)


def kills(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """How often the kernel has killed in this process's cgroup for want of memory; None where nobody counts."""
    for file in _files(groups, root):
        try:
            lines = file.read_text(encoding="ascii").splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        except (OSError, ValueError, IndexError, StopIteration):
            continue
    return None


def _files(groups: Path, root: Path) -> Iterator[Path]:
    """Where the count may be: below the group's path, or, in a container that sees its own group only, at the top."""
    try:
        lines = groups.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if "memory" in controllers.split(","):
            top, name = root / "memory", "memory.oom_control"
        elif not controllers:
            top, name = root, "memory.events"
        else:
            continue
        if ".." not in path:
            yield top / path.lstrip("/") / name
        yield top / name


class OomWatch:
    """Notices kills from its making on."""

    def __init__(self) -> None:
        """Start to count."""
        self._seen = kills()

    def killed(self) -> bool:
        """Whether there was a kill since this was asked last."""
        before, self._seen = self._seen, kills()
        return self._seen is not None and self._seen > (before or 0)
