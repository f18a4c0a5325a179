"""Kubernetes quantities: ``1Gi``, ``500m``, ``1e3``.

The grammar, the rounding and the canonical text are those of ``k8s.io/apimachinery`` v0.34
(``pkg/api/resource/quantity.go``), because a quantity that is read, stored and written again must
come out as a cluster would write it.
"""

from __future__ import annotations

import math
import re
from functools import total_ordering

_SYNTAX = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE]?)", re.ASCII)

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = ("", *_BINARY)

_MAX_INT64 = 2**63 - 1
_NANO = -9
# Longer texts or larger exponents than any real amount needs: refused, as 10**n must stay cheap.
_MAX_TEXT = 1024
_MAX_EXPONENT = 4096

_ONE_STEP = (1, 2, 3, 6, 9)

_KINDS = ("decimal", "exponent", "binary")
_DECIMAL_SI, _DECIMAL_EXPONENT, _BINARY_SI = _KINDS


@total_ordering
class Quantity:
    """An exact amount with the unit family that it was written in.

    ``Quantity(text)`` takes the text of a quantity, or an int or a finite float as JSON numbers give
    them. White space is refused; `from_json` strips it, as reading an API object does.

    ``value`` and ``milli_value`` are rounded up, away from zero. Both are 64-bit numbers in the API,
    and like there an amount outside 64 bits gives a meaningless one: compare quantities (exact at any
    size) before trusting ``value`` of hostile input.

    Raises:
        ValueError: the text is no quantity; the message says what would be.
    """

    __slots__ = ("_exponent", "_kind", "_mantissa", "_text", "_wide")

    _mantissa: int
    _exponent: int
    _kind: str
    _text: str | None
    _wide: bool

    def __init__(self, text: str | int | float) -> None:
        source = _number_text(text)
        match = _SYNTAX.fullmatch(source) if len(source) <= _MAX_TEXT else None
        if match is None or not (match[2] or match[3]):
            shown = source if len(source) <= 40 else source[:40] + "..."
            raise ValueError(f"{shown!r} is not a quantity: write a number such as 2, 0.5, 500m, 1Gi or 1e3")
        sign, whole, fraction, suffix = match[1], match[2].lstrip("0"), match[3] or "", match[4]
        digits = (whole or "0") + fraction
        if suffix in _BINARY:
            self._read_binary(digits, len(whole or "0"), len(fraction), _BINARY[suffix])
        else:
            self._read_decimal(digits, len(fraction), suffix)
        if sign == "-":
            self._mantissa = -self._mantissa
        self._text = source if self._keeps_text(digits) else None

    def _read_binary(self, digits: str, whole: int, fraction: int, shift: int) -> None:
        """Set the amount from digits times 2**shift; a fraction, or many digits, is held in nano units."""
        self._kind = _BINARY_SI
        self._wide = fraction > 0 or 15 - whole - int(shift * 3 / 10) - 1 < 0
        if not self._wide:
            self._mantissa, self._exponent = int(digits) << shift, 0
            self._wide = self._mantissa > _MAX_INT64
        if self._wide:
            self._set_nano(int(digits) << shift, -fraction)
            if self._compare(_MAX_INT64, 0) > 0:
                self._mantissa, self._exponent = _MAX_INT64, 0
            if self._mantissa and self._compare(1, 0) < 0:
                self._kind = _DECIMAL_SI

    def _read_decimal(self, digits: str, fraction: int, suffix: str) -> None:
        """Set the amount from digits times a power of ten; up to 18 digits fit a 64-bit mantissa."""
        if suffix in _DECIMAL:
            self._kind, exponent = _DECIMAL_SI, _DECIMAL[suffix]
        else:
            self._kind, exponent = _DECIMAL_EXPONENT, int(suffix[1:])
            if abs(exponent) > _MAX_EXPONENT:
                raise ValueError(f"quantity exponent {exponent} is out of range: at most {_MAX_EXPONENT}")
        exponent -= fraction
        self._wide = len(digits) > 18 or exponent < _NANO
        if self._wide:
            self._set_nano(int(digits), exponent)
        else:
            self._mantissa, self._exponent = int(digits), exponent

    def _set_nano(self, mantissa: int, exponent: int) -> None:
        """Hold a non-negative amount as a count of 1e-9, rounded up, which is as fine as the API goes."""
        if exponent >= _NANO:
            self._mantissa = mantissa * _power(exponent - _NANO)
        else:
            self._mantissa = -(-mantissa // _power(_NANO - exponent))
        self._exponent = _NANO

    def _keeps_text(self, digits: str) -> bool:
        """Whether the text counts as canonical already, and is written again as it was read."""
        if self._wide:
            return False
        if self._kind == _BINARY_SI:
            return int(digits) % 8 != 0
        return self._exponent % 3 == 0 and not digits.endswith("000") and digits[0] != "0"

    @classmethod
    def from_json(cls, value: object) -> Quantity:
        """Read a quantity out of a JSON document: a string (white space around it is dropped) or a number.

        Raises:
            ValueError: `value` is of another type, or no quantity.
        """
        if isinstance(value, str):
            return cls(value.strip(" \t\r\n"))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return cls(value)
        raise ValueError(f"a quantity is a string or a number, not {_json_type(value)}")

    @classmethod
    def from_bytes(cls, count: int) -> Quantity:
        """Make a quantity of `count` bytes that is written in binary units (``Mi``, ``Gi``)."""
        made = cls.__new__(cls)
        made._mantissa, made._exponent, made._kind = count, 0, _BINARY_SI
        made._text, made._wide = None, not -_MAX_INT64 <= count <= _MAX_INT64
        return made

    def with_value(self, count: int) -> Quantity:
        """A whole amount that is written in the same family of units as this one."""
        made = Quantity.from_bytes(count)
        made._kind = self._kind
        return made

    @property
    def value(self) -> int:
        """The amount in whole units (bytes for memory, CPUs for cpu), rounded up."""
        return self.scaled_value(0)

    @property
    def milli_value(self) -> int:
        """The amount in thousandths (milliCPUs for cpu), rounded up."""
        return self.scaled_value(-3)

    def scaled_value(self, exponent: int) -> int:
        """The amount in units of 10**exponent, rounded away from zero, as a 64-bit number.

        ``resource.Quantity.ScaledValue``: ``scaled_value(3)`` counts in thousands.
        """
        steps = self._exponent - exponent
        if not self._wide:
            if steps < 0:
                magnitude: int = -(-abs(self._mantissa) // _power(-steps))
                return magnitude if self._mantissa >= 0 else -magnitude
            grown = self._mantissa * _power(steps)
            if -_MAX_INT64 - 1 <= grown <= _MAX_INT64:
                return grown
            # Too large: the API's numbers wrap where it multiplies at once, and give up elsewhere
            # (k8s.io/apimachinery/pkg/api/resource/math.go).
            return _int64(grown) if steps in _ONE_STEP else 0
        return _scale_wide(self._mantissa, steps)

    @property
    def sign(self) -> int:
        """-1, 0 or 1; exact at any size."""
        return (self._mantissa > 0) - (self._mantissa < 0)

    def __bool__(self) -> bool:
        return self._mantissa != 0

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, written in the units of the first of the two that is not zero."""
        return self._sum(other, 1)

    def __sub__(self, other: Quantity) -> Quantity:
        """The difference, written in the units of the first of the two that is not zero."""
        return self._sum(other, -1)

    def _sum(self, other: Quantity, sign: int) -> Quantity:
        low = min(self._exponent, other._exponent)
        mine = self._mantissa * _power(self._exponent - low)
        theirs = other._mantissa * _power(other._exponent - low)
        made = Quantity.from_bytes(mine + sign * theirs)
        made._exponent = low
        made._kind = self._kind if self._mantissa else other._kind
        largest = max(abs(mine), abs(theirs))
        made._wide = made._wide or self._wide or other._wide or largest > _MAX_INT64
        return made

    def _compare(self, mantissa: int, exponent: int) -> int:
        low = min(self._exponent, exponent)
        mine, other = self._mantissa * _power(self._exponent - low), mantissa * _power(exponent - low)
        return (mine > other) - (mine < other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity):
            return self._compare(other._mantissa, other._exponent) == 0
        if isinstance(other, int):
            return self._compare(other, 0) == 0
        return NotImplemented

    def __lt__(self, other: Quantity | int) -> bool:
        if isinstance(other, Quantity):
            return self._compare(other._mantissa, other._exponent) < 0
        if isinstance(other, int):
            return self._compare(other, 0) < 0
        return NotImplemented

    def __hash__(self) -> int:
        mantissa, exponent = _without_factors(self._mantissa, 10)
        exponent += self._exponent
        # Equal to the hash of an int where the quantity equals one.
        return hash(mantissa * _power(exponent)) if exponent >= 0 else hash((mantissa, exponent))

    def __str__(self) -> str:
        """The canonical text: no precision lost, no fraction, the largest suffix that fits."""
        if self._text is None:
            self._text = self._canonical()
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def _canonical(self) -> str:
        if not self._mantissa:
            return "0"
        kind = self._kind
        if kind == _BINARY_SI:
            small = self._compare(1024, 0) < 0 and self._compare(-1024, 0) > 0
            if small or self._mantissa % _power(max(-self._exponent, 0)):
                kind = _DECIMAL_SI
            else:
                count = self._mantissa // _power(-self._exponent)
                mantissa, power = _without_factors(count, 1024)
                over = max(power - len(_BINARY_SUFFIX) + 1, 0)
                return f"{mantissa << 10 * over}{_BINARY_SUFFIX[power - over]}"
        mantissa, exponent = _without_factors(self._mantissa, 10)
        exponent += self._exponent
        mantissa *= _power(exponent % 3)
        exponent -= exponent % 3
        if kind == _DECIMAL_SI and exponent in _DECIMAL_SUFFIX:
            return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)


def _number_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        # A wrong type in a document is wrong data: callers handle one kind of error.
        raise ValueError(f"a quantity is a string or a number, not {_json_type(value)}")  # noqa: TRY004
    if isinstance(value, int):
        if value.bit_length() > 3000:
            raise ValueError("the number is too large for a quantity")
        return str(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a quantity: write a finite number")
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def _json_type(value: object) -> str:
    names = {dict: "a mapping", list: "a list", bool: "a boolean", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _without_factors(mantissa: int, factor: int) -> tuple[int, int]:
    """Divide `mantissa` by `factor` as often as it goes; return what is left and how often."""
    times = 0
    while mantissa and mantissa % factor == 0:
        mantissa //= factor
        times += 1
    return mantissa, times


def _power(exponent: int) -> int:
    """10**exponent, for an exponent of zero or more."""
    return int(10**exponent)


def _int64(number: int) -> int:
    """The low 64 bits of `number`, as a signed number."""
    return (number + 2**63) % 2**64 - 2**63


def _scale_wide(mantissa: int, steps: int) -> int:
    """Scale an amount that has outgrown 64 bits, with the wrapping that the API's own numbers have.

    A negative amount below 64 bits wraps before it is divided, and its remainder is rounded towards
    zero and one up (``k8s.io/apimachinery/pkg/api/resource/scale_int.go``).
    """
    if steps >= 0:
        return _int64(mantissa * _power(steps))
    divisor = _power(-steps)
    if mantissa >= _MAX_INT64:
        return _int64(-(-mantissa // divisor))
    wrapped = _int64(mantissa)
    quotient = abs(wrapped) // divisor * (1 if wrapped >= 0 else -1)
    return quotient + (1 if wrapped % divisor else 0)
