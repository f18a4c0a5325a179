"""Sizes, tables, JSON and YAML."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kvnode.cli import output


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (252706816, "241.0 MiB"),
        (-3 << 20, "-3.0 MiB"),
        (5 << 60, "5120.0 PiB"),
    ],
)
def test_size(count: int, text: str) -> None:
    assert output.size(count) == text


def test_plain_table_aligns_and_ends_no_line_in_blanks() -> None:
    text = output.plain_table(("NAME", "SIZE"), [("a", "1"), ("longer", "100")], right=frozenset(["SIZE"]))
    assert text.splitlines() == ["NAME    SIZE", "a          1", "longer   100"]
    assert output.plain_table(("A", "B"), [("x", "")]).splitlines() == ["A  B", "x"]


def test_yaml_repeats_shared_values_and_quotes_what_looks_like_a_boolean() -> None:
    shared = {"a": "yes"}
    text = output.to_yaml([{"one": shared, "two": shared}])
    assert text == "one:\n  a: 'yes'\ntwo:\n  a: 'yes'"


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none()), max_size=3))
def test_yaml_is_read_back(documents: list[object]) -> None:
    assert list(yaml.safe_load_all(output.to_yaml(documents))) == documents


def test_pretty_xml_keeps_prefixes_and_text() -> None:
    text = '<domain xmlns:qemu="urn:q" type="kvm"><name>a b</name><qemu:arg value="&lt;"/><empty/></domain>'
    assert output.pretty_xml(text).splitlines() == [
        '<domain xmlns:qemu="urn:q" type="kvm">',
        "  <name>a b</name>",
        '  <qemu:arg value="&lt;"/>',
        "  <empty/>",
        "</domain>",
    ]


def test_rich_table_colours_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console  # noqa: PLC0415

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = Console(force_terminal=True, width=60, color_system="standard")
    with console.capture() as capture:
        console.print(output.rich_table(("NAME", "VERDICT"), [("a[b]", "over")]))
    assert "\x1b[31mover" in capture.get()
    assert "a[b]" in capture.get()
