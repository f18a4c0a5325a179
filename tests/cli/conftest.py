"""The command line, run in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kvnode.cli import app


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines on standard error."""
        return self.err.splitlines()


Kvnode = Callable[..., Result]


@pytest.fixture
def kvnode(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Kvnode:
    """Runs ``kvnode ARGUMENTS`` with ``stdin`` as standard input."""

    def run(*arguments: str, stdin: str = "") -> Result:
        source = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", source)
        capsys.readouterr()
        code = app.run(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run
