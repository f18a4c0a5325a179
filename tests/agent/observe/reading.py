"""Metrics as Prometheus' own client for Python reads them."""

from __future__ import annotations

import pytest

parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")

Found = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> dict[str, object]:
    """The families of an exposition, by name."""
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def values(text: str) -> Found:
    """All samples."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }
