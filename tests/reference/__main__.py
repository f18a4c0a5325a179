"""``python -m tests.reference``: see the package's docstring."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.reference.common import Case, files_of, load
from tests.reference.parts import PARTS, part_of
from tests.reference.runner import Score, is_kind, module_of, score

DIRECTORY = Path(__file__).resolve().parents[2].parent / "shared" / "parity"
LINES = 12

# What is left out of a difference to count it together with its like.
_VARIABLE = re.compile(r"\[\d+\]|'[^']*'|\"[^\"]*\"|\d+")


def parser() -> argparse.ArgumentParser:
    """The command line's parser."""
    command = argparse.ArgumentParser(
        prog="python -m tests.reference", description="Score the project on the reference's decisions."
    )
    command.add_argument("groups", nargs="*", metavar="GROUP", help="groups to run (all, if none is named)")
    command.add_argument(
        "--dir", type=Path, default=DIRECTORY, help="folder of the cases' folders (../shared/parity)"
    )
    command.add_argument("--for", dest="part", choices=PARTS, help="only the cases that this part needs")
    command.add_argument(
        "--kind", metavar="TEXT", help="only cases of a group, kind, case, via, rpc or field"
    )
    command.add_argument("--only", metavar="ID", help="one case: its id, or FILE:LINE")
    command.add_argument("--show", type=int, default=2, metavar="N", help="differing cases to show a group")
    return command


def main(argv: Sequence[str] | None = None) -> int:
    """Run; 0 when nothing differs and nothing is not-yet, 1 when something is, 2 when there are no cases."""
    options = parser().parse_args(argv)
    try:
        files = files_of(options.dir)
    except (OSError, ValueError) as error:
        print(f"reference: {error}", file=sys.stderr)
        return 2
    unknown = [group for group in options.groups if group not in files]
    if unknown or not files:
        what = f"no group {', '.join(unknown)}" if unknown else "no cases"
        print(f"reference: {what} in {options.dir}", file=sys.stderr)
        return 2
    if not options.only:
        # What the project logs about the cases' hostile inputs is not what the score is about.
        logging.disable(logging.CRITICAL)
    scores: dict[str, Score] = {}
    for group in options.groups or files:
        cases = list(_chosen(load(group, files[group]), options))
        if cases:
            scores[group] = score(cases, module_of(group), traces=bool(options.only))
            _report(group, scores[group], options.show)
    if not scores:
        print("reference: no case is chosen by these options", file=sys.stderr)
        return 2
    if len(scores) > 1:
        _report("all", _sum(scores.values()), 0)
    return 0 if all(one.good for one in scores.values()) else 1


def _chosen(cases: Iterator[Case], options: argparse.Namespace) -> Iterator[Case]:
    for case in cases:
        if options.part and part_of(case) != options.part:
            continue
        if options.kind and not is_kind(case, options.kind):
            continue
        if options.only and not case.answers_to(options.only):
            continue
        yield case


def _report(group: str, total: Score, show: int) -> None:
    for case, lines in total.differ[: max(show, 0)]:
        print(f"  {case.group} {case.id}:")
        for line in lines if len(lines) <= LINES else [*lines[:LINES], f"… {len(lines) - LINES} more lines"]:
            print(f"    {line}")
    if show > 0:
        kinds = Counter(_VARIABLE.sub("_", lines[0])[:90] for _, lines in total.differ)
        for name, counts in (("differ", kinds), ("better", total.better), ("not-yet", total.not_yet)):
            for reason, number in counts.most_common(LINES):
                print(f"  {number:6d} {name}: {reason}")
    print(total.line(group), flush=True)


def _sum(scores: Iterable[Score]) -> Score:
    total = Score()
    for one in scores:
        total.agree += one.agree
        total.better += one.better
        total.differ += one.differ
        total.not_yet += one.not_yet
        total.later += one.later
        total.left_out += one.left_out
    return total


if __name__ == "__main__":
    sys.exit(main())
