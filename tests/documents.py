"""Tables that tests write into the documentation with ``pytest --regenerate``, and compare with it otherwise."""

from __future__ import annotations

BEGIN = "<!-- the table: written by pytest --regenerate -->\n"
END = "<!-- the end of the table -->\n"


def with_table(text: str, table: str) -> str:
    """A document with `table` between its two marks, whatever stands there. ValueError: a mark is missing."""
    begin = text.index(BEGIN) + len(BEGIN)
    return f"{text[:begin]}\n{table.strip()}\n\n{text[text.index(END) :]}"
