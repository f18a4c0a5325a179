"""Kills for want of memory are told from others, under both versions of cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvnode.launcher import oom
from kvnode.launcher.oom import OomWatch, kills

V1 = "9:cpu:/pod\n4:memory:/pod/a\n0::/\n"
V1_CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"
V2_EVENTS = "low 0\nhigh 0\nmax 7\noom 9\noom_kill {}\noom_group_kill 0\n"


def lay(root: Path, groups: str, files: dict[str, str]) -> tuple[Path, Path]:
    """A process's groups, and the cgroup file system."""
    own = root / "cgroup"
    own.write_text(groups)
    for name, content in files.items():
        file = root / "fs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return own, root / "fs"


@pytest.mark.parametrize(
    ("groups", "files", "count"),
    [
        (V1, {"memory/pod/a/memory.oom_control": V1_CONTROL.format(2)}, 2),
        (V1, {"memory/memory.oom_control": V1_CONTROL.format(3)}, 3),
        (V1, {"memory/pod/a/memory.oom_control": "oom_kill_disable 0\n"}, None),
        ("0::/\n", {"memory.events": V2_EVENTS.format(4)}, 4),
        (
            "0::/pod/b\n",
            {"pod/b/memory.events": V2_EVENTS.format(5), "memory.events": V2_EVENTS.format(9)},
            5,
        ),
        ("0::/../../x\n", {"memory.events": V2_EVENTS.format(6)}, 6),
        ("0::/\n", {"memory.events": "oom_kill many\n"}, None),
        ("garbage\n\n::\n", {}, None),
    ],
)
def test_the_count(tmp_path: Path, groups: str, files: dict[str, str], count: int | None) -> None:
    assert kills(*lay(tmp_path, groups, files)) == count


def test_without_cgroups(tmp_path: Path) -> None:
    assert kills(tmp_path / "none", tmp_path) is None


def test_each_kill_is_noticed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([1, 1, 2, 2, None, 3])
    monkeypatch.setattr(oom, "kills", lambda: next(counts))
    watch = OomWatch()
    assert [watch.killed() for _ in range(5)] == [False, True, False, False, True]
