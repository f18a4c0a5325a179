"""``python -m tools.guest``: build the demo guest."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tools.guest.build import OUTPUTS, build
from tools.guest.errors import GuestError


def main(argv: list[str] | None = None) -> int:
    """Run the command; the answer is its exit code: 0 built, 1 not possible, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tools.guest", description="Build the demo guest.")
    parser.add_argument("--out", type=Path, required=True, help=f"directory for {', '.join(OUTPUTS)}")
    parser.add_argument("--refresh", action="store_true", help="ask apt for newer packages first")
    parser.add_argument("--force", action="store_true", help="build anew, whatever the cache holds")
    args = parser.parse_args(argv)
    begun = time.monotonic()

    def say(line: str) -> None:
        print(f"guest [{time.monotonic() - begun:5.1f} s] {line}", file=sys.stderr, flush=True)

    try:
        out = build(args.out, say, refresh=args.refresh, force=args.force)
    except (GuestError, OSError) as error:
        print(f"guest: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    sizes = ", ".join(f"{name} {(out / name).stat().st_blocks * 512 / 2**20:.1f} MiB" for name in OUTPUTS)
    say(f"done: {out} ({sizes})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
