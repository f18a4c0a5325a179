"""The page as a browser without scripts reads it."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urljoin

import pytest

from kvnode.agent.observe import page
from kvnode.agent.observe.bars import bar, size, tone
from kvnode.agent.observe.events import Event
from kvnode.agent.observe.memorywatch import Measured
from kvnode.agent.observe.page import FEW, View
from tests.agent.observe.build import EVENTS, HOSTILE, process, report, seen

VOID = {"meta", "link"}


class Reader(HTMLParser):
    """All tags with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attrs for name, attrs in self.tags if name == tag)


def read(**about: object) -> Reader:
    view = View("node01", **{"seen": [seen()], "events": EVENTS, **about})  # type: ignore[arg-type]
    found = Reader(page.render(view).decode())
    assert found.open == []
    return found


def test_a_vm_with_its_processes_against_their_requests() -> None:
    found = read()
    for text in (
        "default/web",
        "Running",
        "25% of 100%",
        "640.0 MiB of 1,024.0 MiB",
        "151.0 MiB of 268.0 MiB",
    ):
        assert text in found.text
    for text in ("launcher (launcher-program, 6)", "qemu (qemu-program, 7)", "90.0 MiB", "12.0 MiB over"):
        assert text in found.text


def test_bars_say_what_they_show_to_those_who_do_not_see_them() -> None:
    labels = [attrs["aria-label"] for attrs in read().of("svg")]
    assert "CPU 25% of 100%" in labels
    assert "90.0 MiB of 78.0 MiB" in labels
    assert all(attrs.get("role") == "img" for attrs in read().of("svg"))


def test_events_with_their_times() -> None:
    found = read()
    assert [attrs["datetime"] for attrs in found.of("time")] == [one.when for one in EVENTS]
    for one in EVENTS:
        assert f"{one.reason} {one.key} {one.message}" in found.text


def test_hostile_names_are_text() -> None:
    one = seen(phase=HOSTILE, state=HOSTILE, key=f"default/{HOSTILE}")
    told = report(process(HOSTILE, 7, 1, 1, command=HOSTILE))
    event = Event(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    machines = [seen(memory=Measured(told, 0)), one]
    found = Reader(page.render(View(HOSTILE, machines, [event], [HOSTILE])).decode())
    assert {"script", "img"}.isdisjoint(tag for tag, _ in found.tags)
    assert not any(name.startswith("on") for _, attrs in found.tags for name in attrs)
    assert found.text.count("window.hit=1") >= 10


def test_a_few_vms_are_open_and_of_many_those_that_are_short_of_room() -> None:
    assert (
        len([one for one in read(seen=[seen(str(n)) for n in range(FEW)]).of("details") if "open" in one])
        == FEW
    )
    short = seen("short", memory=Measured(report(process("qemu", 7, 250, 78)), 0))
    found = read(seen=[*(seen(str(n)) for n in range(FEW)), short])
    assert len([one for one in found.of("details") if "open" in one]) == 1


def test_a_node_without_vms_and_events() -> None:
    found = read(seen=[], events=[])
    assert "No virtual machines" in found.text
    assert "None yet" in found.text


def test_what_is_not_known_is_not_made_up() -> None:
    found = read(seen=[seen(memory=None, samples=(), load=None, phase="", state="")])
    assert "Unknown" in found.text
    assert "not been measured yet" in found.text
    assert list(found.of("svg")) == []


def test_an_agent_that_is_not_ready_says_why() -> None:
    assert "not all launchers" in read(problems=["not all launchers have been asked"]).text
    assert "agent not ready" in read(problems=["x"]).text
    assert "agent ready" in read().text


def test_the_page_stands_still_unless_it_is_to_follow() -> None:
    assert not any(one.get("http-equiv") for one in read().of("meta"))
    assert any(one.get("http-equiv") == "refresh" for one in read(follows=True).of("meta"))


@pytest.mark.parametrize("follows", [False, True])
def test_links_lead_on_from_wherever_the_page_is_served(follows: bool) -> None:
    """Such as below the path of an API server's proxy."""
    here = "https://server/api/v1/nodes/node01:8185/proxy/"
    links = [str(one["href"]) for one in read(follows=follows).of("a")]
    on = {urljoin(here + "?follow" * follows, link).removeprefix(here) for link in links}
    assert on == {"metrics", "healthz", "readyz", "" if follows else "?follow"}


@pytest.mark.parametrize(
    ("used", "of", "expected"),
    [(0, 10, ""), (8.9, 10, ""), (9, 10, "near"), (10, 10, "near"), (10.1, 10, "over")],
)
def test_tones(used: float, of: float, expected: str) -> None:
    assert tone(used, of) == expected


def test_of_a_bar_that_is_overrun_the_part_beyond_the_request_is_told_apart() -> None:
    assert '<rect width="50.0%" height="8"/><rect class="beyond" x="50.0%" width="50.0%"' in bar(20, 10, "x")
    assert "beyond" not in bar(10, 10, "x")
    assert bar(5, 0, "x") == ""


def test_sizes() -> None:
    assert [size(1 << 20), size(1500 << 20), size(64 << 30)] == ["1.0 MiB", "1,500.0 MiB", "64.0 GiB"]


def test_half_a_pair_of_utf_16_is_no_end_of_the_page() -> None:
    assert b"a?b" in page.render(View("a\ud800b", []))
