"""Cases, outcomes and the comparison."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUFFIXES = (".jsonl.xz", ".jsonl")


@dataclass(frozen=True)
class Case:
    """One line of a group's file."""

    group: str
    line: int
    data: dict[str, Any]

    @property
    def id(self) -> str:
        """Its ``id``, or FILE:LINE where it has none."""
        return str(self.data.get("id") or f"{self.group}:{self.line}")

    def answers_to(self, name: str) -> bool:
        """Whether ``name`` is its id; FILE may be written with its ending too."""
        file, _, line = name.rpartition(":")
        names = {self.group, *(self.group + suffix for suffix in SUFFIXES)}
        return name == self.id or ("id" not in self.data and file in names and line == str(self.line))


@dataclass(frozen=True)
class Outcome:
    """What running one case gave."""

    want: Any = None
    """The reference's answer."""

    got: Any = None
    """The project's."""

    not_yet: str = ""
    """The part that is not built yet, if that is why there is no answer."""

    left_out: Mapping[str, int] = field(default_factory=dict)
    """What was taken out of both sides: part to number of calls."""

    @classmethod
    def of(cls, want: Any, got: Any, left_out: Mapping[str, int] | None = None) -> Outcome:
        """Both answers, to be compared."""
        return cls(want, got, left_out=left_out or {})

    @classmethod
    def missing(cls, part: str) -> Outcome:
        """``part`` is not built yet."""
        return cls(not_yet=part)


def files_of(directory: Path) -> dict[str, Path]:
    """The groups' files below ``directory``, by group, in the order of folders and names.

    Raises:
        ValueError: two files are of the same group.
    """
    found: dict[str, Path] = {}
    for path in sorted(directory.glob("*/*.jsonl*")):
        suffix = next((s for s in SUFFIXES if path.name.endswith(s)), None)
        if suffix is None:
            continue
        group = path.name.removesuffix(suffix)
        if group in found:
            raise ValueError(f"{found[group]} and {path} hold the same group")
        found[group] = path
    return found


def load(group: str, path: Path) -> Iterator[Case]:
    """The cases in a group's file."""
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield Case(group, number, json.loads(line))


def differences(want: Any, got: Any, path: str = "") -> list[str]:
    """A line for each place where the two differ; empty when they are the same."""
    if isinstance(want, dict) and isinstance(got, dict):
        lines = []
        for key in sorted(set(want) | set(got), key=str):
            here = f"{path}.{key}"
            if key not in got:
                lines.append(f"{here}: missing, expected {_brief(want[key])}")
            elif key not in want:
                lines.append(f"{here}: unexpected {_brief(got[key])}")
            else:
                lines += differences(want[key], got[key], here)
        return lines
    if isinstance(want, list) and isinstance(got, list):
        lines = [] if len(want) == len(got) else [f"{path}: expected {len(want)} items, got {len(got)}"]
        for index, (one, other) in enumerate(zip(want, got, strict=False)):
            lines += differences(one, other, f"{path}[{index}]")
        return lines
    if isinstance(want, str) and isinstance(got, str) and want != got and len(want) > 120:
        return [f"{path}: {_first_difference(want, got)}"]
    # Equal in Python's eyes is not enough: True is no number here, and 1.0 no integer.
    same = type(want) is type(got) and want == got
    return [] if same else [f"{path}: expected {_brief(want)}, got {_brief(got)}"]


def _first_difference(want: str, got: str) -> str:
    pairs = enumerate(zip(want, got, strict=False))
    at = next((i for i, (one, other) in pairs if one != other), min(len(want), len(got)))
    start = max(at - 60, 0)
    return f"at character {at}: expected …{want[start : at + 60]!r}, got …{got[start : at + 60]!r}"


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 160 else text[:159] + "…"
