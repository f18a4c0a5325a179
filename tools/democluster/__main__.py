"""``python -m tools.democluster``: bring up a cluster, run a VM in it, show it, take all of it away."""

from __future__ import annotations

import argparse
import signal
import sys

from tests.cluster.errors import ClusterError
from tools.democluster.demo import Demo
from tools.democluster.terminal import Terminal


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    """Run the demo; the answer is its exit code: 0 shown, 1 not possible, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tools.democluster", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave cluster and VM running")
    args = parser.parse_args(argv)
    terminal = Terminal()
    try:
        Demo(terminal).run(keep=args.keep)
    except (ClusterError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        terminal.say("interrupted: nothing is left")
        return 130
    return 0


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    sys.exit(main())
