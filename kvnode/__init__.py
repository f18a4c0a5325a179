"""kvnode: the node half of KubeVirt as a library, a launcher and a standalone mode.

The library turns a VirtualMachineInstance into libvirt domain XML (`convert`), and knows the API's defaults
(`apply_defaults`), rules (`validate`, `warnings`) and memory overhead (`memory_overhead`). Names are loaded when
first used: importing this package costs next to nothing, and a program that only converts never loads the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvnode.api.errors import ConversionError
    from kvnode.api.quantity import Quantity
    from kvnode.converter import ConverterContext, convert, convert_many
    from kvnode.provenance import diff, explain
    from kvnode.spec.cause import Cause
    from kvnode.spec.config import ClusterConfig
    from kvnode.spec.defaults import DefaultingError, apply_defaults
    from kvnode.spec.overhead import memory_overhead, memory_overhead_terms
    from kvnode.spec.pod import render_launcher_pod
    from kvnode.spec.validation import validate, warnings

__version__ = "0.1.0"

_HOME = {
    "Cause": "kvnode.spec.cause",
    "ClusterConfig": "kvnode.spec.config",
    "ConversionError": "kvnode.api.errors",
    "ConverterContext": "kvnode.converter",
    "DefaultingError": "kvnode.spec.defaults",
    "Quantity": "kvnode.api.quantity",
    "apply_defaults": "kvnode.spec.defaults",
    "convert": "kvnode.converter",
    "convert_many": "kvnode.converter",
    "diff": "kvnode.provenance",
    "explain": "kvnode.provenance",
    "memory_overhead": "kvnode.spec.overhead",
    "memory_overhead_terms": "kvnode.spec.overhead",
    "render_launcher_pod": "kvnode.spec.pod",
    "validate": "kvnode.spec.validation",
    "warnings": "kvnode.spec.validation",
}

__all__ = [
    "Cause",
    "ClusterConfig",
    "ConversionError",
    "ConverterContext",
    "DefaultingError",
    "Quantity",
    "apply_defaults",
    "convert",
    "convert_many",
    "diff",
    "explain",
    "memory_overhead",
    "memory_overhead_terms",
    "render_launcher_pod",
    "validate",
    "warnings",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
