"""Prometheus' text format, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kvnode.kube.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_EXACT = 1 << 53
"""Whole numbers up to here are the same in Prometheus' 64-bit floats."""


class Exposition:
    """Metrics as they are put together; samples of one name may come in any order."""

    def __init__(self) -> None:
        """Empty."""
        self._heads: dict[str, str] = {}
        self._samples: dict[str, dict[str, str]] = {}

    def add(self, name: str, kind: str, text: str, value: float, labels: Mapping[str, str]) -> None:
        """Add a sample; ``kind`` is ``gauge`` or ``counter``, ``text`` says what the metric is.

        Of two samples with the same labels the first counts, and a value that is no finite number is left out: with
        either, Prometheus would refuse the whole.
        """
        if not math.isfinite(value):
            return
        self._head(name, kind, text)
        self._add(name, name, value, labels)

    def add_histogram(self, name: str, text: str, found: Histogram, labels: Mapping[str, str]) -> None:
        """Add a histogram."""
        self._head(name, "histogram", text)
        count = 0
        for bound, count in found:
            shown = "+Inf" if math.isinf(bound) else repr(bound)
            self._add(name, f"{name}_bucket", count, {**labels, "le": shown})
        self._add(name, f"{name}_sum", found.sum, labels)
        self._add(name, f"{name}_count", count, labels)

    def _head(self, name: str, kind: str, text: str) -> None:
        if name not in self._heads:
            self._heads[name] = f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
            self._samples[name] = {}

    def _add(self, family: str, name: str, value: float, labels: Mapping[str, str]) -> None:
        pairs = ",".join(f'{key}="{labels[key].translate(_ESCAPES)}"' for key in sorted(labels))
        whole = value == int(value) and abs(value) <= _EXACT
        shown = str(int(value)) if whole else repr(float(value))
        self._samples[family].setdefault(f"{name}{{{pairs}}}" if pairs else name, shown)

    def __bytes__(self) -> bytes:
        return str(self).encode(errors="replace")

    def __str__(self) -> str:
        return "".join(
            self._heads[name]
            + "".join(f"{sample} {value}\n" for sample, value in self._samples[name].items())
            for name in sorted(self._heads)
        )
