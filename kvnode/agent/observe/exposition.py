"""Prometheus' text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Exposition:
    """Metrics as they are put together; samples of one name may come in any order."""

    def __init__(self) -> None:
        """Empty."""
        self._heads: dict[str, str] = {}
        self._samples: dict[str, list[str]] = {}

    def add(self, name: str, kind: str, text: str, value: float, labels: Mapping[str, str]) -> None:
        """Add a sample; ``kind`` is ``gauge`` or ``counter``, ``text`` says what the metric is."""
        if name not in self._heads:
            self._heads[name] = f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        pairs = ",".join(f'{key}="{labels[key].translate(_ESCAPES)}"' for key in sorted(labels))
        shown = str(int(value)) if value == int(value) else repr(value)
        self._samples.setdefault(name, []).append(
            f"{name}{{{pairs}}} {shown}\n" if pairs else f"{name} {shown}\n"
        )

    def __str__(self) -> str:
        return "".join(self._heads[name] + "".join(self._samples[name]) for name in sorted(self._heads))
