"""Command lines as KubeVirt's programs take them: those of Go's pflag.

``--name value``, ``--name=value``, ``--switch``, ``--switch=false``; arguments may stand between flags; ``--``
ends the flags. ``-v`` (verbosity of the log) is taken by every program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}


class FlagError(Exception):
    """A command line that cannot be read; one line that names the flag."""


def duration(text: str) -> float:
    """Seconds in a duration as Go writes it: ``3m``, ``4m32.5s``, ``300ms``; raises ValueError."""
    body = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if body == "0":
        return 0.0
    total, position = 0.0, 0
    for match in _PART.finditer(body):
        if match.start() != position:
            break
        total += float(match[1]) * _UNITS[match[2]]
        position = match.end()
    if not body or position != len(body):
        raise ValueError("must be a duration such as 4m30s")
    return -total if text.startswith("-") else total


def boolean(text: str) -> bool:
    """A switch's value; raises ValueError."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("must be true or false")


def whole(text: str) -> int:
    """A whole number; raises ValueError."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None


@dataclass(frozen=True)
class Flag:
    """One flag: its value when it is not given, and how a given one is read."""

    default: Any
    read: Callable[[str], Any] = str

    @property
    def is_switch(self) -> bool:
        """Whether it needs no value."""
        return self.read is boolean


def switch() -> Flag:
    """A flag without a value."""
    return Flag(False, boolean)


VERBOSITY = {"v": Flag(2, whole)}

#: Overrides ``-v`` (``pkg/util/util.go``).
VERBOSITY_VARIABLE = "VIRT_LAUNCHER_LOG_VERBOSITY"


@dataclass
class Parsed:
    """What a command line held."""

    values: dict[str, Any]
    arguments: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Flags that this program does not know, with their values, as they stood."""

    def __getitem__(self, name: str) -> Any:
        """The value of a flag."""
        return self.values[name]


def parse(flags: Mapping[str, Flag], argv: Sequence[str], *, allow_unknown: bool = False) -> Parsed:
    """Read a command line.

    Raises:
        FlagError: a flag is not known (unless that is allowed), lacks its value, or has one that cannot be read.
    """
    known = {**VERBOSITY, **flags}
    parsed = Parsed({name: flag.default for name, flag in known.items()})
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            parsed.arguments += rest
            break
        if not word.startswith("-") or word == "-":
            parsed.arguments.append(word)
            continue
        name, given, value = word.lstrip("-").partition("=")
        if not word.startswith("--"):
            name, given, value = _short(word)
        flag = known.get(name)
        if flag is None:
            _take_unknown(parsed, word, rest, bool(given), allow_unknown)
            continue
        if not given:
            if flag.is_switch:
                value = "true"
            elif rest:
                value = rest.pop(0)
            else:
                raise FlagError(f"--{name} needs a value")
        try:
            parsed.values[name] = flag.read(value)
        except ValueError as error:
            raise FlagError(f"--{name}: {error}, is {value[:60]!r}") from None
    return parsed


def verbosity(parsed: Parsed) -> int:
    """How much is to be logged: the environment's word counts more than the flag's."""
    try:
        return int(os.environ[VERBOSITY_VARIABLE])
    except (KeyError, ValueError):
        return int(parsed["v"])


def _short(word: str) -> tuple[str, str, str]:
    """``-v3``, ``-v=3`` and ``-v 3``."""
    name, value = word[1], word[2:]
    return name, value, value.removeprefix("=")


def _take_unknown(parsed: Parsed, word: str, rest: list[str], given: bool, allowed: bool) -> None:
    if not allowed:
        raise FlagError(f"unknown flag {word.partition('=')[0]}")
    parsed.unknown.append(word)
    if not given and rest and not rest[0].startswith("-"):
        parsed.unknown.append(rest.pop(0))
