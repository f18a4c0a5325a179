"""``python -m tools.images``: build the project's container images."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict

from tools.images.build import build
from tools.images.errors import ImageError


def main(argv: list[str] | None = None) -> int:
    """Run the command; the answer is its exit code: 0 built, 1 not possible, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tools.images", description="Build the container images.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="launcher, agent, demo-guest (default: all)")
    parser.add_argument("--refresh", action="store_true", help="take the packages that Debian has now")
    parser.add_argument("-o", "--output", choices=("list", "json"), default="list")
    args = parser.parse_args(argv)
    begun = time.monotonic()

    def say(line: str) -> None:
        print(f"images [{time.monotonic() - begun:5.1f} s] {line}", file=sys.stderr, flush=True)

    try:
        images = build(args.names, say, refresh=args.refresh)
    except (ImageError, OSError) as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if args.output == "json":
        print(json.dumps([asdict(image) for image in images], indent=2))
    else:
        for image in images:
            names = ", ".join(image.references)
            print(f"{image.name:<11} {image.size / 2**20:6.1f} MiB  {image.archive}\n{'':<11} {names}")
    say(f"done: {len(images)} images")
    return 0


if __name__ == "__main__":
    sys.exit(main())
