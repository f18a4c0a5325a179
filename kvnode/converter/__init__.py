"""VMI to libvirt domain XML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.api.errors import ConversionError
from kvnode.converter.context import ConverterContext
from kvnode.converter.jsonbytes import json_bytes

__all__ = ["ConversionError", "ConverterContext", "convert"]


def convert(
    vmi: bytes | str | Mapping[str, Any], context: ConverterContext | Mapping[str, Any] | None = None
) -> bytes:
    """The libvirt domain XML of a VMI, UTF-8.

    `vmi`: a defaulted VirtualMachineInstance as JSON bytes (the fastest), str or a mapping. `context`: what the node knows;
    whoever converts often makes a ConverterContext once. Raises ConversionError, whose `field` is the path at fault.
    """
    if not isinstance(context, ConverterContext):
        context = ConverterContext(context)
    return context._converter.convert(vmi if isinstance(vmi, bytes) else json_bytes(vmi, "VMI"))
