"""What commands print: JSON and YAML for programs, aligned tables for people, colours only on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

Row = Sequence[str]

UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")

STYLES = {
    "Running": "green",
    "within": "green",
    "over": "red",
    "Failed": "red",
    "Unknown": "red",
    "Succeeded": "dim",
    "Scheduled": "yellow",
}
"""Colours of the words that say how something stands."""


def size(count: int) -> str:
    """A number of bytes for people: ``12.0 MiB``; below one KiB in bytes."""
    if abs(count) < 1024:
        return f"{count} B"
    number = float(count)
    for unit in UNITS:
        number /= 1024
        if abs(number) < 1024 or unit == UNITS[-1]:
            break
    return f"{number:.1f} {unit}"


def pretty_xml(text: str) -> str:
    """The same XML, an element a line, for people; only blanks between elements are added."""
    from xml.dom import minidom  # noqa: PLC0415

    # What is read here was written by the converter a moment ago.
    pretty = minidom.parseString(text).toprettyxml(indent="  ")  # noqa: S318
    return pretty.partition("\n")[2].rstrip("\n")


def to_json(value: Any) -> str:
    """JSON with two spaces of indentation; text stays readable."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def to_json_line(value: Any) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def to_yaml(documents: Sequence[Any]) -> str:
    """YAML, one document each; keys keep their order."""
    import yaml  # noqa: PLC0415 - loaded by those who print it

    class Plain(yaml.SafeDumper):
        """Writes a shared value each time instead of an alias."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    def text_of(dumper: Plain, value: str) -> yaml.ScalarNode:
        # PyYAML folds these as if they were line feeds, unless they stand in double quotes.
        style = '"' if any(c in value for c in "\x85\u2028\u2029") else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Plain.add_representer(str, text_of)
    text: str = yaml.dump_all(
        documents, Dumper=Plain, sort_keys=False, allow_unicode=True, default_flow_style=False, width=110
    )
    return text.rstrip("\n").removesuffix("\n...")


def emit(value: Any, form: str) -> None:
    """Print a value as ``json`` or ``yaml``."""
    click.echo(to_json(value) if form == "json" else to_yaml([value]))


def is_terminal() -> bool:
    """Whether standard output is a terminal that can do more than print lines."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def on_terminal() -> bool:
    """Whether standard output is a terminal, and colours are welcome there (NO_COLOR is not set)."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def table(headers: Row, rows: Sequence[Row], *, right: frozenset[str] = frozenset()) -> None:
    """Print rows under their headers; the columns named in ``right`` are aligned to the right."""
    if is_terminal():
        from rich.console import Console  # noqa: PLC0415 - half of the command's start-up time

        Console().print(rich_table(headers, rows, right=right))
    else:
        click.echo(plain_table(headers, rows, right=right))


def plain_table(headers: Row, rows: Sequence[Row], *, right: frozenset[str] = frozenset()) -> str:
    """The table as text, columns two spaces apart, no line ending in a blank."""
    widths = [max(len(str(row[i])) for row in (headers, *rows)) for i in range(len(headers))]
    lines = []
    for row in (headers, *rows):
        cells = [
            cell.rjust(width) if header in right else cell.ljust(width)
            for header, cell, width in zip(headers, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def rich_table(headers: Row, rows: Sequence[Row], *, right: frozenset[str] = frozenset()) -> Table:
    """The table for a terminal."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    made = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        made.add_column(header, justify="right" if header in right else "left", no_wrap=True)
    for row in rows:
        made.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    return made
