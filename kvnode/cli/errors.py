"""The error that every verb raises: one line for people, and an exit code."""

from __future__ import annotations

from kvnode.cli import exitcodes


class CliError(Exception):
    """Shown as ``kvnode: SOURCE: FIELD: MESSAGE``, the empty parts left out.

    Args:
        message: what is wrong and what would be right; brought onto one line.
        source: the file, and the document in it.
        field: path of the field at fault.
        code: one of ``exitcodes``.
    """

    def __init__(
        self, message: str, *, source: str = "", field: str = "", code: int = exitcodes.FAILED
    ) -> None:
        self.message = one_line(message)
        self.source = source
        self.field = field
        self.code = code
        super().__init__(self.line())

    def line(self) -> str:
        """The text after ``kvnode: ``."""
        return ": ".join(part for part in (one_line(self.source), one_line(self.field), self.message) if part)


class JoinedError(CliError):
    """Several errors at once; it exits with the code of the first."""

    def __init__(self, errors: list[CliError]) -> None:
        self.errors = errors
        super().__init__(f"{len(errors)} errors", code=errors[0].code)

    def line(self) -> str:
        """The lines of the errors, each but the first led in anew."""
        return "\nkvnode: ".join(error.line() for error in self.errors)


def one_line(text: str) -> str:
    """``text`` on one line with its control characters escaped, so that hostile input cannot steer a
    terminal.
    """
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(text.split())
    )
