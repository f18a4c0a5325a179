"""YAML and JSON are read as Kubernetes' tools read them, and within limits."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kvnode.cli.errors import CliError
from kvnode.cli.yamldoc import MAX_DEPTH, Duplicate, load_all, scalar


def load(text: str) -> Any:
    (document,) = load_all(text, "f")
    return document.value


def refused(text: str) -> str:
    with pytest.raises(CliError) as caught:
        load_all(text, "f")
    assert "\n" not in caught.value.line()
    return caught.value.line()


@pytest.mark.parametrize("text", ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
def test_yaml_1_1_truth(text: str) -> None:
    assert scalar(text) is True


@pytest.mark.parametrize("text", ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
def test_yaml_1_1_falsehood(text: str) -> None:
    assert scalar(text) is False


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("~", None),
        ("null", None),
        ("64", 64),
        ("-7", -7),
        ("+7", 7),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("0644", 420),
        ("0o644", 420),
        ("089", 89.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("18446744073709551616", 2**64),
    ],
)
def test_numbers_and_null(text: str, value: object) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "190:20:30",
        "2001-12-14",
        "2001-12-14T21:59:43Z",
        "64Mi",
        "yEs",
        "1.2.3",
        "0x",
        "tRUE",
        "-",
        "1e",
        "=",
        "<",
    ],
)
def test_what_only_looks_like_a_value_is_text(text: str) -> None:
    assert scalar(text) == text


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan", "1e999"])
def test_numbers_that_json_lacks_are_refused(text: str) -> None:
    assert "line 1" in refused(f"a: {text}")


def test_quoted_and_block_text_stays_text() -> None:
    assert load("a: 'yes'\nb: \"5\"\nc: |\n  on\nd: !!str 5\n") == {
        "a": "yes",
        "b": "5",
        "c": "on\n",
        "d": "5",
    }


def test_keys_become_text() -> None:
    assert load("1: a\nyes: b\nx: c") == {"1": "a", "true": "b", "x": "c"}


def test_merge_keys_do_not_override() -> None:
    text = "base: &b {a: 1, b: 2}\nmade:\n  <<: *b\n  b: 3\nboth:\n  <<: [*b, {c: 9, a: 8}]\n"
    value = load(text)
    assert value["made"] == {"a": 1, "b": 3}
    assert value["both"] == {"a": 1, "b": 2, "c": 9}


def test_tags() -> None:
    assert load("a: !!binary aGk=\nb: !!float 3\nc: !!int '5'\n") == {"a": "hi", "b": 3.0, "c": 5}
    assert "!!binary must be base64" in refused("a: !!binary '*'")
    assert "tag !mine is not supported" in refused("a: !mine 1")
    assert "tag !!python/object" in refused("a: !!python/object:os.system {}").replace(
        "tag:yaml.org,2002:", "!!"
    )


def test_duplicate_keys_are_reported_with_path_and_line_and_the_last_wins() -> None:
    text = "spec:\n  disks:\n  - name: a\n    name: b\n  running: true\nspec2: 1\nspec2: 2\n"
    (document,) = load_all(text, "f")
    assert document.value == {"spec": {"disks": [{"name": "b"}], "running": True}, "spec2": 2}
    assert document.duplicates == [Duplicate("spec.disks[0].name", 4), Duplicate("spec2", 7)]


def test_duplicate_keys_in_json() -> None:
    (document,) = load_all('{"a": 1, "a": 2}', "f")
    assert document.value == {"a": 2}
    assert [d.path for d in document.duplicates] == ["a"]


def test_several_documents_and_empty_ones() -> None:
    assert [d.value for d in load_all("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n", "f")] == [
        {"a": 1},
        {"b": 2},
    ]
    assert [d.value for d in load_all('{"a": 1}\n{"b": 2}\n', "f")] == [{"a": 1}, {"b": 2}]
    assert load_all("", "f") == []


def test_a_flow_mapping_is_yaml_though_it_begins_with_a_brace() -> None:
    assert load("{a: 1, b: [x]}") == {"a": 1, "b": ["x"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1", "is not YAML"),
        ("a: b: c", "is not YAML: mapping values are not allowed"),
        ('{"a": ', "is not JSON: Expecting value at line 1"),
        ("a: *nowhere", "alias *nowhere names nothing"),
        ("a: &x [*x]", "alias *x names nothing that is complete before it"),
        ("? [a]\n: 1", "a key must be a plain value"),
        ("? \n: 1", "a key must be a text, a number or a boolean"),
        ("<<: 5", "<< must be given a mapping"),
        ('{"a": NaN}', "holds NaN"),
        ('{"a": 1e999}', "too large a number"),
        ('{"a": ' + "9" * 5000 + "}", "a number of 5000 digits"),
        ("a: \x01", "is not YAML"),
    ],
)
def test_what_cannot_be_read_is_one_line(text: str, said: str) -> None:
    assert said in refused(text)


@pytest.mark.parametrize(("start", "end"), [("[", "]"), ('{"a":', "}"), ("{a: ", "}"), ("- ", "")])
def test_deep_nesting_is_refused(start: str, end: str) -> None:
    assert load(start * 50 + "1" + end * 50)
    assert f"nested deeper than {MAX_DEPTH} levels" in refused(start * 101 + "1" + end * 101)
    # libyaml has a limit of its own, higher than ours, which it may come to first.
    assert "nest" in refused(start * 100_000 + "1" + end * 100_000)


def test_an_alias_bomb_is_refused_at_once() -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 12)]
    begun = time.process_time()
    assert "aliases counted as often as they are used" in refused("\n".join(lines))
    assert time.process_time() - begun < 20, "read out it would have ten to the twelfth entries"


def test_ten_thousand_disks_are_read() -> None:
    text = "disks:\n" + "".join(f"- {{name: d{i}, disk: {{bus: virtio}}}}\n" for i in range(10_000))
    assert len(load(text)["disks"]) == 10_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), json_values, max_size=4))
def test_json_is_read_back(value: dict[str, Any]) -> None:
    assert load(json.dumps(value)) == value
    assert load(json.dumps(value, ensure_ascii=False)) == value


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=6), json_values)
)
def test_what_pyyaml_writes_is_read_back(value: dict[str, Any]) -> None:
    text = yaml.safe_dump(value, default_style='"')
    assert load(text if value else "{}") == value


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    line = ""
    try:
        json.dumps([d.value for d in load_all(text, "f")])
    except CliError as error:
        line = error.line()
    assert "\n" not in line
