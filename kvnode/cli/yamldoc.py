"""YAML and JSON text to plain values, as Kubernetes' own tools read it, with limits.

The rules are those of sigs.k8s.io/yaml (goyaml.v2): YAML 1.1's booleans (``yes``, ``off``, ``n`` …) are
booleans, a leading 0 means octal, base-60 numbers are strings, and so are dates. Values are built from parser
events by a loop, not by recursion, so that no input can exhaust the stack; depth and the number of values,
aliases counted at what they stand for, are limited.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvnode.cli.errors import CliError

if TYPE_CHECKING:
    import yaml

MAX_DEPTH = 100
"""Levels of nesting; a VMI needs about twelve."""
MAX_VALUES = 1_000_000
"""Values in one text, each alias counted as often as it is used."""

_BOOLEANS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_INFINITIES = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-")
_LONGEST_NUMBER = 400
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Duplicate:
    """A key that is there more than once in one mapping; the last one counts."""

    path: str
    line: int
    """Line of the later one, from 1; 0 when unknown."""


@dataclass
class Document:
    """One document of a text."""

    value: Any
    duplicates: list[Duplicate] = field(default_factory=list)


def load_all(text: str, source: str) -> list[Document]:
    """The documents in ``text``, which is JSON if it begins with a brace and reads as such, else YAML; empty
    ones are left out.

    Raises:
        CliError: it is neither, or beyond the limits.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("{"):
        try:
            return _load_json(stripped, source)
        except json.JSONDecodeError as error:
            problem = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        try:
            return _load_yaml(text, source)
        except CliError as error:
            raise CliError(f"{problem}; nor {error.message}", source=source) from None
    return _load_yaml(text, source)


def scalar(text: str) -> Any:
    """The value of a plain (unquoted, untagged) YAML scalar.

    Raises:
        ValueError: a number that JSON cannot hold.
    """
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text in _NULLS:
        return None
    if _INFINITIES.fullmatch(text):
        raise ValueError(f"{text} is no number that JSON can hold")
    if text[0] not in "+-.0123456789" or _DATE.match(text):
        return text
    # A point in front is not taken for a number with underscores in it; a sign or a digit is.
    plain = text if text[0] == "." else text.replace("_", "")
    if len(plain) > _LONGEST_NUMBER:
        return text
    if match := _INTEGER.fullmatch(plain):
        sign, hexadecimal, binary, octal, decimal = match.groups()
        digits, base = next(
            (d, b) for d, b in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)) if d
        )
        return int(sign + digits, base)
    if _FLOAT.fullmatch(plain):
        number = float(plain)
        if math.isinf(number):
            raise ValueError(f"{text} is too large a number")
        return number
    return text


# --- JSON -----------------------------------------------------------------------------------------


class _RefusedError(Exception):
    """A text that reads as JSON and is refused all the same."""


def _load_json(text: str, source: str) -> list[Document]:
    documents: list[Document] = []
    duplicates: list[Duplicate] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) != len(items):
            seen: set[str] = set()
            for key, _ in items:
                if key in seen:
                    duplicates.append(Duplicate(key, 0))
                seen.add(key)
        return result

    decoder = json.JSONDecoder(
        object_pairs_hook=pairs, parse_constant=_no_constant, parse_int=_json_int, parse_float=_json_float
    )
    position = 0
    try:
        while position < len(text):
            duplicates = []
            value, position = decoder.raw_decode(text, position)
            _check_depth(value)
            documents.append(Document(value, duplicates))
            position = _skip_blank(text, position)
    except _RefusedError as error:
        raise CliError(str(error), source=source) from None
    except RecursionError:
        raise CliError(f"is nested deeper than {MAX_DEPTH} levels", source=source) from None
    return documents


def _skip_blank(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _no_constant(name: str) -> Any:
    raise _RefusedError(f"holds {name}, which is no number that JSON can hold")


def _json_int(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise _RefusedError(f"holds a number of {len(text)} digits")
    return int(text)


def _json_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _RefusedError(f"holds {text[:40]}, which is too large a number")
    return number


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            if isinstance(parent, (dict, list))
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return
    raise _RefusedError(f"is nested deeper than {MAX_DEPTH} levels")


# --- YAML -----------------------------------------------------------------------------------------


def _load_yaml(text: str, source: str) -> list[Document]:
    # Loaded here: programs that are given JSON never pay for it.
    import yaml  # noqa: PLC0415

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        events: Iterator[yaml.Event] = yaml.parse(text, Loader=loader)
        return [d for d in _Builder(yaml).documents(events) if d.value is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise CliError(f"is not YAML: {error.problem or error.context}{where}", source=source) from None
    except yaml.YAMLError as error:
        raise CliError(f"is not YAML: {error}", source=source) from None
    except _YamlRefusedError as error:
        raise CliError(str(error), source=source) from None


class _YamlRefusedError(Exception):
    def __init__(self, event: Any, message: str) -> None:
        super().__init__(f"line {event.start_mark.line + 1}: {message}")


@dataclass
class _Open:
    """A mapping or sequence that is being filled."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    before: int
    """Values counted before this one."""
    key: str | None = None
    has_key: bool = False
    merges: list[Any] = field(default_factory=list)
    own: set[str] = field(default_factory=set)


class _Builder:
    """Values from events."""

    def __init__(self, module: Any) -> None:
        self._yaml = module
        self._count = 0

    def documents(self, events: Iterator[yaml.Event]) -> Iterator[Document]:
        for event in events:
            if isinstance(event, self._yaml.DocumentStartEvent):
                self._stack: list[_Open] = []
                self._anchors: dict[str, tuple[Any, int]] = {}
                self._root: Any = None
                self._duplicates: list[Duplicate] = []
            elif isinstance(event, self._yaml.DocumentEndEvent):
                yield Document(self._root, self._duplicates)
            elif not isinstance(event, (self._yaml.StreamStartEvent, self._yaml.StreamEndEvent)):
                self._take(event)

    def _take(self, event: Any) -> None:
        y = self._yaml
        if isinstance(event, y.ScalarEvent):
            self._counted(event, 1)
            value, merge = self._scalar(event)
            if event.anchor:
                self._anchors[event.anchor] = (value, 1)
            self._place(event, value, merge=merge)
        elif isinstance(event, y.AliasEvent):
            if event.anchor not in self._anchors:
                raise _YamlRefusedError(
                    event, f"the alias *{event.anchor} names nothing that is complete before it"
                )
            value, weight = self._anchors[event.anchor]
            self._counted(event, weight)
            self._place(event, value)
        elif isinstance(event, (y.MappingStartEvent, y.SequenceStartEvent)):
            self._open(event)
        else:
            self._close(event)

    def _counted(self, event: Any, weight: int) -> None:
        self._count += weight
        if self._count > MAX_VALUES:
            raise _YamlRefusedError(
                event, f"more than {MAX_VALUES} values, aliases counted as often as they are used"
            )

    def _open(self, event: Any) -> None:
        mapping = isinstance(event, self._yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if mapping else "seq")):
            raise _YamlRefusedError(event, f"the tag {event.tag} is not supported")
        if len(self._stack) >= MAX_DEPTH:
            raise _YamlRefusedError(event, f"nested deeper than {MAX_DEPTH} levels")
        if self._stack and isinstance(self._stack[-1].value, dict) and not self._stack[-1].has_key:
            raise _YamlRefusedError(event, "a key must be a plain value, not a mapping or a list")
        before = self._count
        self._counted(event, 1)
        if event.anchor:
            self._anchors.pop(event.anchor, None)
        self._stack.append(_Open({} if mapping else [], event.anchor, before))

    def _close(self, event: Any) -> None:
        done = self._stack.pop()
        if isinstance(done.value, dict):
            for source in done.merges:
                for key, value in source.items():
                    done.value.setdefault(key, value)
        if done.anchor:
            self._anchors[done.anchor] = (done.value, self._count - done.before)
        self._place(event, done.value)

    def _place(self, event: Any, value: Any, *, merge: bool = False) -> None:
        if not self._stack:
            self._root = value
            return
        top = self._stack[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif not top.has_key:
            top.has_key = True
            top.key = None if merge else self._key(event, value)
        else:
            self._set(event, top, value)
            top.has_key = False

    def _set(self, event: Any, top: _Open, value: Any) -> None:
        assert isinstance(top.value, dict)  # noqa: S101 - for the type checker
        if top.key is None:
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise _YamlRefusedError(event, "<< must be given a mapping or a list of mappings")
            top.merges.extend(sources)
            return
        if top.key in top.own:
            self._duplicates.append(Duplicate(self._path(top.key), event.start_mark.line + 1))
        top.own.add(top.key)
        top.value[top.key] = value

    def _path(self, last: str) -> str:
        """Path of a key in the innermost mapping."""
        path = ""
        for item in self._stack[:-1]:
            if isinstance(item.value, list):
                path += f"[{len(item.value)}]"
            elif item.key is not None:
                path += f".{item.key}"
        return f"{path}.{last}".lstrip(".")

    def _key(self, event: Any, value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (int, float)):
            return str(value)
        raise _YamlRefusedError(event, "a key must be a text, a number or a boolean")

    def _scalar(self, event: Any) -> tuple[Any, bool]:
        """The value of a scalar event, and whether it is the merge key."""
        text: str = event.value
        plain = event.implicit[0] and event.style in (None, "")
        try:
            if event.tag is None:
                return (scalar(text), text == "<<") if plain else (text, False)
            return self._tagged(event, text), False
        except ValueError as error:
            raise _YamlRefusedError(event, str(error)) from None

    def _tagged(self, event: Any, text: str) -> Any:
        kind = event.tag.removeprefix(_TAG)
        if kind in ("!", "str", "timestamp"):
            return text
        if kind == "binary":
            try:
                return base64.b64decode("".join(text.split()), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise ValueError("!!binary must be base64 of UTF-8 text") from None
        value = scalar(text)
        if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        wanted: dict[str, type | tuple[type, ...]] = {
            "int": int,
            "float": float,
            "bool": bool,
            "null": type(None),
        }
        if kind not in wanted:
            raise ValueError(f"the tag {event.tag} is not supported")
        if not isinstance(value, wanted[kind]) or (kind == "int" and isinstance(value, bool)):
            raise ValueError(f"{text[:40]!r} is no {kind}")
        return value
