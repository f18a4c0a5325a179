"""Single values, as Go reads them from XML text and from JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from kvnode.api.quantity import Quantity

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


@dataclass(frozen=True)
class Scalar:
    """A kind of single value. Both readers raise ValueError with what would be right."""

    zero: Any
    from_text: Callable[[str], Any]
    from_json: Callable[[Any], Any]


def whole(text: str) -> str:
    """The text with half a pair of surrogates replaced, as Go does."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text_from_json(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004
    return whole(value)


def _bool_from_text(text: str) -> bool:
    word = text.strip()
    if not text or word in _FALSE:
        return False
    if word in _TRUE:
        return True
    raise ValueError("must be true or false")


def _bool_from_json(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")  # noqa: TRY004
    return value


def _integer(low: int, high: int) -> Scalar:
    digits = re.compile(r"[+-]?\d+" if low < 0 else r"\d+", re.ASCII)
    wanted = f"must be an integer from {low} to {high}"

    def checked(number: int) -> int:
        if not low <= number <= high:
            raise ValueError(wanted)
        return number

    def from_text(text: str) -> int:
        if not text:
            return 0
        word = text.strip()
        # Twenty digits hold any number in range; more than some thousand would be refused by int() itself.
        if not digits.fullmatch(word) or len(word.lstrip("+-0")) > 20:
            raise ValueError(wanted)
        return checked(int(word))

    def from_json(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(wanted)  # noqa: TRY004
        return checked(value)

    return Scalar(0, from_text, from_json)


def _time_from_text(text: str) -> str | None:
    wanted = "must be a time such as 2024-01-02T03:04:05Z"
    if not _RFC3339.fullmatch(text):
        raise ValueError(wanted)
    try:
        moment = datetime.fromisoformat(text.replace(",", ".")).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(wanted) from None
    written = moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)
    # Go's zero time is written as null.
    return None if written == "0001-01-01T00:00:00Z" else written


def _time_from_json(value: Any) -> str | None:
    if not isinstance(value, str):
        raise ValueError("must be a time such as 2024-01-02T03:04:05Z")  # noqa: TRY004
    return _time_from_text(value)


def _float_from_text(text: str) -> int | float:
    return _float_from_json(float(text)) if text else 0


def _float_from_json(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a number")  # noqa: TRY004
    return go_number(value)


def go_number(value: float) -> int | float:
    """The number as Go writes it: a whole one below 1e21 has no point."""
    whole = isinstance(value, int) or (value.is_integer() and abs(value) < 1e21)
    return int(value) if whole else float(value)


def _no_text(_text: str) -> Any:
    raise ValueError("does not occur in XML")


def _map_from_json(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("must be an object")  # noqa: TRY004
    # Go writes maps sorted by key.
    return {key: _text_from_json(value[key]) for key in sorted(value)}


TEXT = Scalar("", str, _text_from_json)
BOOL = Scalar(False, _bool_from_text, _bool_from_json)
INT32 = _integer(-(2**31), 2**31 - 1)
INT64 = _integer(-(2**63), 2**63 - 1)
UINT32 = _integer(0, 2**32 - 1)
UINT64 = _integer(0, 2**64 - 1)
FLOAT = Scalar(0, _float_from_text, _float_from_json)
#: A time in UTC to the second, as Kubernetes writes it; null when there is none.
TIME = Scalar(None, _time_from_text, _time_from_json)
#: Strings by name.
TEXTS = Scalar(None, _no_text, _map_from_json)
#: Any JSON, left alone.
RAW = Scalar(None, _no_text, lambda value: value)


def _micro_time(value: Any) -> str:
    wanted = "must be a time such as 2024-01-02T03:04:05.000000Z"
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise ValueError(wanted)
    try:
        moment = datetime.fromisoformat(value.replace(",", ".")).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(wanted) from None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def _bools(value: Any) -> list[bool]:
    if not isinstance(value, list):
        raise ValueError("must be a list")  # noqa: TRY004
    return [_bool_from_json(item) for item in value]


def _quantity(value: Any) -> str:
    return str(Quantity.from_json(value))


_PART = r"(\d+(?:\.\d*)?|\.\d+)(h|ms|us|µs|μs|ns|m|s)"
_DURATION = re.compile(rf"(-|\+)?(0|(?:{_PART})+)", re.ASCII)
_NANOSECONDS = {
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ns": 1,
}


def _duration(value: Any) -> str:
    wanted = "must be a duration such as 1m30s"
    if not isinstance(value, str) or len(value) > 64:
        raise ValueError(wanted)
    match = _DURATION.fullmatch(value)
    if match is None:
        raise ValueError(wanted)
    parts = re.findall(_PART, match[2], re.ASCII)
    total = sum(int(Fraction(number) * _NANOSECONDS[unit]) for number, unit in parts)
    if total >= 2**63:
        raise ValueError(wanted)
    return ("-" if match[1] == "-" and total else "") + _written_duration(total)


def _written_duration(nanoseconds: int) -> str:
    """As Go's time.Duration prints itself."""
    if nanoseconds < 10**9:
        for unit, size in (("ms", 10**6), ("µs", 10**3), ("ns", 1)):
            if nanoseconds >= size:
                return _decimal(nanoseconds, size) + unit
        return "0s"
    minutes, rest = divmod(nanoseconds, 60 * 10**9)
    seconds = _decimal(rest, 10**9) + "s"
    if not minutes:
        return seconds
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + f"{minutes}m{seconds}"


def _decimal(number: int, size: int) -> str:
    whole, rest = divmod(number, size)
    digits = str(rest).zfill(len(str(size)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


#: A time in UTC to the microsecond; null when there is none.
MICRO_TIME = Scalar(None, _no_text, _micro_time)
BOOLS = Scalar(None, _no_text, _bools)
#: An amount as Kubernetes writes it, in canonical form.
QUANTITY = Scalar("0", _no_text, _quantity)
#: A duration as Go writes it.
DURATION = Scalar("0s", _no_text, _duration)
