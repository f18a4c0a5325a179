"""``python -m tools.parity``: score the project against the whole reference set, above a floor that only
rises.

The reference set is a directory with ``parity.py`` in it, which prints ``GROUP: N of M agree`` for each
group. The floor is ``tests/parity_floor.json``: cases that agree, by group. A score below it fails;
``--raise`` writes higher scores into it, and nothing lowers it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLOOR = ROOT / "tests" / "parity_floor.json"

Scores = dict[str, tuple[int, int]]
"""Group to cases that agree and cases in all."""

_SCORE = re.compile(r"^(\w+): (\d+) of (\d+) agree$", re.MULTILINE)


def parse_scores(text: str) -> Scores:
    """The scores in what ``parity.py`` printed."""
    return {group: (int(agree), int(total)) for group, agree, total in _SCORE.findall(text)}


def read_floor(path: Path) -> dict[str, int]:
    """The floor, empty when the file is not there.

    Raises:
        ValueError: the file is not a mapping of group to number.
    """
    if not path.exists():
        return {}
    floor = json.loads(path.read_text())
    if not isinstance(floor, dict) or not all(type(v) is int for v in floor.values()):
        raise ValueError(f"{path.name} must map each group to a number of cases")
    return floor


def below(scores: Scores, floor: Mapping[str, int]) -> list[str]:
    """A line for each group that scores less than its floor, or was not scored."""
    lines = []
    for group, least in sorted(floor.items()):
        agree = scores.get(group, (0, 0))[0]
        if agree < least:
            lines.append(f"{group}: {agree} agree, the floor is {least}")
    return lines


def raised(scores: Scores, floor: Mapping[str, int]) -> dict[str, int]:
    """The floor with each group at its score, where that is higher."""
    best = {group: max(agree, floor.get(group, 0)) for group, (agree, _) in scores.items()}
    return dict(sorted({**floor, **best}.items()))


def main(argv: list[str] | None = None) -> int:
    """Run the command; the answer is its exit code: 0 not below the floor, 1 below, 2 no reference set."""
    parser = argparse.ArgumentParser(prog="python -m tools.parity", description=__doc__)
    parser.add_argument("--reference", type=Path, required=True, metavar="DIR", help="the reference set")
    parser.add_argument("--raise", dest="lift", action="store_true", help="raise the floor to the scores")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="failing cases to show a group")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="score these alone")
    args = parser.parse_args(argv)
    runner = args.reference / "parity.py"
    if not runner.is_file():
        print(f"parity: no reference set there: {runner} is missing", file=sys.stderr)
        return 2
    command = [sys.executable, str(runner), "--show", str(args.show), *args.groups]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        text = ""
        for line in process.stdout or ():
            print(line, end="", flush=True)
            text += line
    scores = parse_scores(text)
    if process.returncode not in (0, 1) or not scores:
        print(f"parity: the runner failed with status {process.returncode}", file=sys.stderr)
        return 1
    floor = read_floor(FLOOR)
    asked = {group: least for group, least in floor.items() if not args.groups or group in args.groups}
    failed = below(scores, asked)
    for line in failed:
        print(f"parity: {line}", file=sys.stderr)
    if args.lift:
        FLOOR.write_text(json.dumps(raised(scores, floor), indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
