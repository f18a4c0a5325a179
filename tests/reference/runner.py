"""Runs cases and counts what came of them."""

from __future__ import annotations

import importlib
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.reference.better import reason_for
from tests.reference.common import Case, Outcome, differences
from tests.reference.parts import later

Run = Callable[[Case], Outcome]

#: Fields of a case that --kind looks at.
KIND_FIELDS = ("group", "kind", "case", "via", "rpc", "field")


@dataclass
class Score:
    """What came of a group's cases."""

    agree: int = 0
    better: Counter[str] = field(default_factory=Counter)
    differ: list[tuple[Case, list[str]]] = field(default_factory=list)
    not_yet: Counter[str] = field(default_factory=Counter)
    later: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def good(self) -> bool:
        """Nothing differs, and nothing is not-yet."""
        return not self.differ and not self.not_yet

    def line(self, group: str) -> str:
        """The group's line in the report."""
        text = (
            f"{group}: {self.agree} agree, {self.better.total()} better, "
            f"{len(self.differ)} differ, {self.not_yet.total()} not-yet"
        )
        if self.later:
            text += f", {self.later.total()} later"
        if self.left_out:
            text += " (left out of both sides: " + ", ".join(
                f"{number} {part}" for part, number in sorted(self.left_out.items())
            )
            text += ")"
        return text


def module_of(group: str) -> Run | None:
    """The ``run`` of a group's module; None when the group has no module."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", group):
        return None
    name = f"{__package__}.groups.{group}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            return None
        raise
    run: Run = module.run
    return run


def is_kind(case: Case, text: str) -> bool:
    """Whether one of the fields that tell a case's kind contains ``text``, in any case of letters."""
    wanted = text.casefold()
    return any(wanted in str(case.data.get(name) or "").casefold() for name in KIND_FIELDS)


def score(cases: Iterable[Case], run: Run | None, *, traces: bool = False) -> Score:
    """Run a group's cases. ``traces`` adds the traceback of an exception to its difference."""
    total = Score()
    for case in cases:
        if reason := later(case):
            total.later[reason] += 1
        elif run is None:
            total.not_yet["the group has no module"] += 1
        else:
            _one(case, run, total, traces)
    return total


def _one(case: Case, run: Run, total: Score, traces: bool) -> None:
    try:
        outcome = run(case)
    except NotImplementedError as error:
        total.not_yet[str(error) or "not implemented"] += 1
        return
    except Exception as error:
        lines = [f"crashed: {type(error).__name__}: {error}"]
        total.differ.append((case, lines + (traceback.format_exc().splitlines() if traces else [])))
        return
    if outcome.not_yet:
        total.not_yet[outcome.not_yet] += 1
        return
    total.left_out.update(outcome.left_out)
    lines = differences(outcome.want, outcome.got)
    if not lines:
        total.agree += 1
    elif reason := reason_for(case, outcome.want, outcome.got):
        total.better[reason] += 1
    else:
        total.differ.append((case, lines))
