"""The node's VMs on one page, as plain HTML: no script, nothing from elsewhere.

All that comes from VMs, launchers and the API server is text, and escaped. Widths of bars are attributes of SVG, so
that the page's policy needs to allow no style but the sheet that it comes with.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

from kvnode.agent.observe.bars import bar, row, size
from kvnode.agent.observe.events import Event
from kvnode.agent.observe.headroom import AGAIN
from kvnode.agent.observe.samples import Seen
from kvnode.agent.observe.style import STYLE
from kvnode.memory.report import MemoryReport

REFRESH = 10
"""Seconds until the browser asks again, where whoever looks wants that."""
FEW = 6
"""So many VMs are shown with their processes at once."""

_DIGEST = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src data:; base-uri 'none'; form-action 'none'"
)
"""What a browser may load for it: the sheet, and the empty icon."""


@dataclass(frozen=True, slots=True)
class View:
    """What is shown."""

    node: str
    seen: Sequence[Seen]
    events: Sequence[Event] = ()
    """The last ones, newest first."""
    problems: Sequence[str] = ()
    """Why the agent is not well or not ready; nothing when it is."""
    now: float = 0.0
    """The time on the clock of the measurements."""
    follows: bool = False
    """Whether the page is to be asked for again and again."""


def render(view: View) -> bytes:
    """The page."""
    # A name may hold half of a pair of UTF-16, which no encoding knows.
    return _render(view).encode(errors="replace")


def _render(view: View) -> str:
    machines = "".join(_machine(one, view.now, len(view.seen) <= FEW) for one in view.seen)
    machines = machines or '<p class="empty">No virtual machines on this node.</p>'
    told = "".join(_event(one) for one in view.events)
    told = f'<ul class="events">{told}</ul>' if told else '<p class="empty">None yet.</p>'
    again = f'<meta http-equiv="refresh" content="{REFRESH}">' if view.follows else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(view.node)} - kvnode</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">{again}'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head><body>{_header(view)}<main>{_problems(view)}'
        f"<h2>Virtual machines</h2>{machines}<h2>Last events</h2>{told}</main>"
        '<footer>Also here: <a href="metrics">metrics</a>, <a href="healthz">health</a>, '
        '<a href="readyz">readiness</a>.</footer></body></html>'
    )


def _header(view: View) -> str:
    phases = Counter(one.phase or "Unknown" for one in view.seen)
    counts = ", ".join(f"{number} {escape(phase)}" for phase, number in sorted(phases.items()))
    state = "near" if view.problems else "good"
    word = "not ready" if view.problems else "ready"
    follow = (
        '<a href="./">Stop following</a>'
        if view.follows
        else f'<a href="?follow">Follow (every {REFRESH} s)</a>'
    )
    return (
        f'<header><h1>{escape(view.node)}</h1><span class="pill {state}">agent {word}</span>'
        f'<span class="soft">{counts or "no VMs"}</span><span class="push">{follow}</span></header>'
    )


def _problems(view: View) -> str:
    if not view.problems:
        return ""
    lines = "".join(f"<li>{escape(one)}</li>" for one in view.problems)
    return f'<div class="note" role="status"><strong>The agent is not ready</strong><ul>{lines}</ul></div>'


def _machine(one: Seen, now: float, is_open: bool) -> str:
    report = one.memory.report if one.memory else None
    short = report is not None and report.overhead_used >= AGAIN * report.overhead_requested
    phase, state = escape(one.phase or "Unknown"), escape(one.state or "none")
    tone = {"Running": "good", "Failed": "over"}.get(one.phase, "soft")
    told = "The memory of its processes has not been measured yet."
    if one.memory is not None:
        told = f"Memory measured {max(now - one.memory.when, 0.0):.0f} s ago."
    within = f"{_processes(report) if report else ''}<p>Domain: {state}. {told}</p>"
    shown = " open" if is_open or short else ""
    return (
        f"<details{shown}><summary><b>{escape(one.key)}</b>"
        f'<span><span class="pill {tone}">{phase}</span></span>'
        f"{_cpu(one)}{_guest(report)}{_overhead(report)}</summary>"
        f'<div class="within">{within}</div></details>'
    )


def _cpu(one: Seen) -> str:
    cpus = len({labels["id"] for metric, _, labels in one.samples if metric.name == "vcpu_seconds_total"})
    if one.load is None:
        return _figure("CPU", "-", "")
    of = f" of {cpus:d}00%" if cpus else ""
    text = f"{one.load:.0%}{of}"
    return _figure("CPU", text, bar(one.load, cpus or 1, f"CPU {text}", judged=False))


def _guest(report: MemoryReport | None) -> str:
    if report is None or not report.guest_size:
        return _figure("Guest's memory", "-", "")
    text = f"{size(report.guest_resident)} of {size(report.guest_size)}"
    drawn = bar(
        report.guest_resident, report.guest_size, f"Guest's memory {text}", judged=False, kind="guest"
    )
    return _figure("Guest's memory", text, drawn)


def _overhead(report: MemoryReport | None) -> str:
    if report is None:
        return _figure("Overhead", "-", "")
    text = f"{size(report.overhead_used)} of {size(report.overhead_requested)}"
    drawn = bar(report.overhead_used, report.overhead_requested, f"Memory overhead {text}")
    return _figure("Overhead", text, drawn)


def _figure(name: str, text: str, drawn: str) -> str:
    return f'<span class="figure"><span><span class="soft">{name}</span> {text}</span>{drawn}</span>'


@cache
def _head() -> str:
    names = ("Memory of", "used", "requested", "")
    kinds = ("", ' class="number used"', ' class="number asked"', ' class="wide"')
    cells = "".join(
        f'<th scope="col"{kind}>{name}</th>' if name else f"<td{kind}></td>"
        for name, kind in zip(names, kinds, strict=True)
    )
    return f"<thead><tr>{cells}</tr></thead>"


def _processes(report: MemoryReport) -> str:
    rows = [row("the guest", report.guest_resident, report.guest_size, judged=False, kind="guest")]
    rows += [
        row(f"{one.role} ({one.command}, {one.pid})", one.proportional, one.share) for one in report.processes
    ]
    rows.append(row("page tables", report.page_tables, report.page_tables_share))
    rows.append(row("memory overhead", report.overhead_used, report.overhead_requested, is_sum=True))
    return f"<table>{_head()}<tbody>{''.join(rows)}</tbody></table>"


def _event(one: Event) -> str:
    tone = "near" if one.kind == "Warning" else "soft"
    return (
        f'<li><time datetime="{escape(one.when)}">{escape(one.when)}</time> <span class="pill {tone}">'
        f"{escape(one.reason)}</span> <b>{escape(one.key)}</b> {escape(one.message)}</li>"
    )
