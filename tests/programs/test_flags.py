"""Command lines as pflag reads them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.launcher.programs.flags import Flag, FlagError, duration, parse, switch, verbosity, whole

FLAGS = {"name": Flag("nobody"), "count": Flag(3, whole), "wait": Flag(1.0, duration), "quiet": switch()}


@pytest.mark.parametrize(
    ("argv", "values", "arguments"),
    [
        ([], {"name": "nobody", "count": 3, "quiet": False, "v": 2}, []),
        (["--name", "a", "--count=4"], {"name": "a", "count": 4}, []),
        (["--quiet", "x"], {"quiet": True}, ["x"]),
        (["--quiet=false"], {"quiet": False}, []),
        (["x", "--name=a=b", "y"], {"name": "a=b"}, ["x", "y"]),
        (["--name", "--quiet"], {"name": "--quiet", "quiet": False}, []),
        (["--", "--name", "a"], {"name": "nobody"}, ["--name", "a"]),
        (["-v", "4"], {"v": 4}, []),
        (["-v=4", "-"], {"v": 4}, ["-"]),
        (["-v4"], {"v": 4}, []),
        (["--wait", "4m30s"], {"wait": 270.0}, []),
        (["--count", "-1"], {"count": -1}, []),
    ],
)
def test_flags_are_read(argv: list[str], values: dict[str, object], arguments: list[str]) -> None:
    parsed = parse(FLAGS, argv)
    assert {name: parsed[name] for name in values} == values
    assert parsed.arguments == arguments


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["--colour", "red"], "unknown flag --colour"),
        (["--colour=red"], "unknown flag --colour"),
        (["-x"], "unknown flag -x"),
        (["--name"], "--name needs a value"),
        (["--count", "many"], "--count: must be a whole number, is 'many'"),
        (["--quiet=perhaps"], "--quiet: must be true or false, is 'perhaps'"),
        (["--wait", "3"], "--wait: must be a duration such as 4m30s, is '3'"),
    ],
)
def test_bad_flags_are_named(argv: list[str], complaint: str) -> None:
    with pytest.raises(FlagError, match=complaint):
        parse(FLAGS, argv)


def test_unknown_flags_are_kept_with_their_values_where_they_are_allowed() -> None:
    parsed = parse(FLAGS, ["--colour", "red", "--loud", "--name", "a", "--size=3"], allow_unknown=True)
    assert parsed.unknown == ["--colour", "red", "--loud", "--size=3"]
    assert parsed["name"] == "a"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("3m", 180), ("1h2m3.5s", 3723.5), ("300ms", 0.3), (".5s", 0.5), ("-2s", -2), ("+1us", 1e-6)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "-", "5", "s", "1d", "1s2", "1 s", "1s ", "\u0661s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration(text)


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(duration(text), float)


def test_the_environment_sets_the_verbosity(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = parse({}, ["-v", "3"])
    assert verbosity(parsed) == 3
    monkeypatch.setenv("VIRT_LAUNCHER_LOG_VERBOSITY", "7")
    assert verbosity(parsed) == 7
    monkeypatch.setenv("VIRT_LAUNCHER_LOG_VERBOSITY", "loud")
    assert verbosity(parsed) == 3
