"""Any accepted form of a JSON object to bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.api.errors import ConversionError

__all__ = ["json_bytes"]


def json_bytes(source: bytes | bytearray | memoryview | str | Mapping[str, Any], what: str) -> bytes:
    """`source` as UTF-8 JSON. `what` names it in errors. Raises ConversionError for what JSON cannot hold."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, (bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, str):
        try:
            return source.encode()
        except UnicodeEncodeError:
            raise ConversionError("", f"the {what} is not valid Unicode: it has a lone surrogate") from None
    if isinstance(source, Mapping):
        # Loaded here: whoever converts bytes never pays for it.
        import orjson  # noqa: PLC0415

        try:
            return orjson.dumps(source if isinstance(source, dict) else dict(source))
        except (TypeError, RecursionError) as e:
            raise ConversionError("", f"the {what} cannot be written as JSON: {e}") from None
    raise ConversionError("", f"the {what} must be JSON bytes, str or a mapping, not {type(source).__name__}")
