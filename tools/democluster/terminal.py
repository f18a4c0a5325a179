"""What the demo's visitor sees."""

from __future__ import annotations

import sys
import time


class Terminal:
    """Steps with the time since the start; commands in bold on a terminal, and what they answer as it is."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._bold, self._plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")

    def say(self, line: str) -> None:
        """A step."""
        print(f"demo [{time.monotonic() - self._begun:5.1f} s] {line}", flush=True)

    def command(self, line: str) -> None:
        """A command that a visitor could give."""
        print(f"\n{self._bold}$ {line}{self._plain}", flush=True)

    def show(self, text: str) -> None:
        """What it answered."""
        print(text.rstrip("\n"), flush=True)
