"""VMI to libvirt domain XML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, overload

from kvnode.api.errors import ConversionError
from kvnode.converter.context import ConverterContext
from kvnode.converter.jsonbytes import json_bytes
from kvnode.converter.shares import run_shares

__all__ = ["ConversionError", "ConverterContext", "convert", "convert_many"]

Source = bytes | str | Mapping[str, Any]


def convert(vmi: Source, context: ConverterContext | Mapping[str, Any] | None = None) -> bytes:
    """The libvirt domain XML of a VMI, UTF-8.

    `vmi`: a defaulted VirtualMachineInstance as JSON bytes (the fastest), str or a mapping. `context`: what the node
    knows; whoever converts often makes a ConverterContext once. Raises ConversionError, whose `field` is the path
    at fault; only fields that the conversion reads are checked.
    """
    if not isinstance(context, ConverterContext):
        context = ConverterContext(context)
    return context._converter.convert(vmi if isinstance(vmi, bytes) else json_bytes(vmi, "VMI"))


@overload
def convert_many(
    vmis: Iterable[Source],
    context: ConverterContext | Mapping[str, Any] | None = None,
    *,
    threads: int = 1,
    return_errors: Literal[False] = False,
) -> list[bytes]: ...
@overload
def convert_many(
    vmis: Iterable[Source],
    context: ConverterContext | Mapping[str, Any] | None = None,
    *,
    threads: int = 1,
    return_errors: Literal[True],
) -> list[bytes | ConversionError]: ...
def convert_many(
    vmis: Iterable[Source],
    context: ConverterContext | Mapping[str, Any] | None = None,
    *,
    threads: int = 1,
    return_errors: bool = False,
) -> Any:
    """The domain XML of each VMI, in order, on `threads` threads that hold the GIL only to hand over results.

    All VMIs share one context. Raises the ConversionError of the first VMI at fault, its index as `.index`; with
    `return_errors` the errors stand in the list instead, each in its VMI's place. Raises ValueError for less than
    one thread.
    """
    if threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    if not isinstance(context, ConverterContext):
        context = ConverterContext(context)
    sources: list[Any] = list(vmis)
    if set(map(type, sources)) - {bytes}:
        sources = [vmi if isinstance(vmi, bytes) else json_bytes(vmi, "VMI") for vmi in sources]
    results: list[object] = [None] * len(sources)
    if not run_shares(context._converter, sources, results, threads):
        return results
    for index, result in enumerate(results):
        if isinstance(result, ConversionError):
            result.index = index
            if not return_errors:
                raise result
        elif not isinstance(result, bytes):
            raise MemoryError("no memory for the domain XML")  # noqa: TRY004
    return results
