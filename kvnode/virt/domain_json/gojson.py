"""Reads and writes structures as JSON, by the rules of Kubernetes' unmarshaller and Go's encoding/json.

Names must match in every letter, unknown ones are passed over, of a name that comes twice the last counts,
null is as good as absent, and nothing may follow the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from kvnode.virt.domain_json.errors import DomainFormatError
from kvnode.virt.domain_json.scalars import Scalar, whole
from kvnode.virt.domain_json.shape import Field, Struct, written

# Half a pair of surrogates, or a whole one: there are no others in what was read as UTF-8.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# Go escapes these three for HTML's sake, and two line separators for JavaScript's.
_ESCAPES = tuple((c, f"\\u{ord(c):04x}") for c in "<>&\u2028\u2029")


def encode(struct: Struct, value: Mapping[str, Any]) -> str:
    """Write a value byte for byte as Go would."""
    return _dump(written(struct, value))


def encode_many(struct: Struct, values: list[Mapping[str, Any]] | None) -> str:
    """Write a list of values; None is ``null``."""
    return _dump(None if values is None else [written(struct, value) for value in values])


def _dump(plain: Any) -> str:
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # What is escaped stands in strings only. Go spells backspace and form feed as Python does.
    for character, escape in _ESCAPES:
        text = text.replace(character, escape)
    return text


def decode(struct: Struct, data: bytes | str, path: str = "") -> dict[str, Any]:
    """Read a value; ``path`` is what it is called in errors.

    Raises:
        DomainFormatError: it is no JSON, or a value is not what its field takes.
    """
    return from_plain(struct, load(data, path), path)


def decode_many(struct: Struct, data: bytes | str, path: str = "") -> list[dict[str, Any]] | None:
    """Read a list of values, None for ``null``; raises DomainFormatError as :func:`decode` does."""
    plain = load(data, path)
    if plain is None:
        return None
    if not isinstance(plain, list):
        raise DomainFormatError(path, "must be a list")
    return [from_plain(struct, item, f"{path}[{index}]") for index, item in enumerate(plain)]


def load(data: bytes | str, path: str = "") -> Any:
    """Parse JSON, whatever it holds; half a pair of surrogates is replaced, as Go does.

    Raises DomainFormatError as :func:`decode` does.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_constant=_no_constant)
        return _without_halves(value) if _SURROGATE.search(text) else value
    except ValueError as error:
        raise DomainFormatError(path, f"is not JSON: {error}") from None
    except RecursionError:
        raise DomainFormatError(path, "is nested too deep") from None


def _without_halves(value: Any) -> Any:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list):
        return [_without_halves(part) for part in value]
    if isinstance(value, dict):
        return {whole(name): _without_halves(part) for name, part in value.items()}
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def from_plain(struct: Struct, plain: Any, path: str = "") -> dict[str, Any]:
    """Read a value from what a JSON parser gave; raises DomainFormatError as :func:`decode` does."""
    value = struct.zero()
    if plain is None:
        return value
    if not isinstance(plain, dict):
        raise DomainFormatError(path, "must be an object")
    for name, item in plain.items():
        field = struct.by_name.get(name)
        if field is not None and item is not None:
            value[name] = _item(field, item, f"{path}.{name}" if path else name)
    return value


def _item(field: Field, item: Any, path: str) -> Any:
    if field.form != "many":
        return _single(field.kind, item, path)
    if not isinstance(item, list):
        raise DomainFormatError(path, "must be a list")
    return [_single(field.kind, part, f"{path}[{index}]") for index, part in enumerate(item)]


def _single(kind: Struct | Scalar, item: Any, path: str) -> Any:
    if isinstance(kind, Struct):
        return from_plain(kind, item, path)
    if item is None:
        return kind.zero
    try:
        return kind.from_json(item)
    except ValueError as error:
        raise DomainFormatError(path, str(error)) from None
