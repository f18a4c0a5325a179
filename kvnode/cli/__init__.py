"""The ``kvnode`` command: one file per verb, each loaded when it is used."""

from __future__ import annotations


def main() -> None:
    """Entry point of the ``kvnode`` script; ends the process with one of ``kvnode.cli.exitcodes``."""
    # Loaded here, so that `import kvnode.cli` stays free of the command-line toolkit.
    import sys  # noqa: PLC0415

    from kvnode.cli.app import run  # noqa: PLC0415

    sys.exit(run(sys.argv[1:]))
