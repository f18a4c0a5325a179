"""The node's VMs on one page, as plain HTML: no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from kvnode.agent.observe.samples import Seen
from kvnode.memory.report import MemoryReport

MEBIBYTE = 1 << 20
REFRESH = 10
"""Seconds until the browser asks again."""

_STYLE = """
body{font:15px/1.4 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1c1c1c;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd}
.number{text-align:right;font-variant-numeric:tabular-nums}
meter{width:10rem;height:.9rem}.over{color:#a40000;font-weight:600}
@media(prefers-color-scheme:dark){body{color:#eee;background:#191919}th,td{border-color:#444}.over{color:#ff8a80}}
"""


def render(
    node: str, seen: Iterable[Seen], load: Mapping[str, float], events: Iterable[str], ready: bool
) -> str:
    """The page; ``load`` is each VM's share of a CPU, by its key, ``events`` the last ones, newest first."""
    machines = "".join(_machine(one, load.get(one.key)) for one in seen)
    told = "".join(f"<li>{escape(one)}</li>" for one in events) or "<li>none yet</li>"
    state = "ready" if ready else "not ready"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(node)}</title>'
        f'<meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="{REFRESH}">'
        f"<style>{_STYLE}</style></head><body><main><h1>{escape(node)}</h1><p>The agent is {state}.</p>"
        f"{machines or '<p>No virtual machines run on this node.</p>'}"
        f"<h2>Last events</h2><ul>{told}</ul></main></body></html>"
    )


def _machine(one: Seen, load: float | None) -> str:
    cpu = "-" if load is None else f"{load:.0%}"
    rows = _processes(one.memory) if one.memory else ""
    phase, state = escape(one.phase or "unknown"), escape(one.state or "none")
    facts = f"<p>Phase {phase}, domain {state}, CPU {cpu}</p>"
    return f"<section><h2>{escape(one.key)}</h2>{facts}{rows}</section>"


def _processes(report: MemoryReport) -> str:
    rows = [_row("guest's memory", report.guest_resident, report.guest_size)]
    rows += [_row(f"{one.role} ({one.pid})", one.proportional, one.share) for one in report.processes]
    rows.append(_row("page tables", report.page_tables, report.page_tables_share))
    rows.append(_row("all but the guest's", report.overhead_used, report.overhead_requested))
    head = '<tr><th>Memory of</th><th class="number">used</th><th class="number">requested</th><th></th></tr>'
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _row(name: str, used: int, requested: int) -> str:
    over = ' class="over"' if requested and used > requested else ""
    share = f"{used / requested:.0%}" if requested else ""
    bar = f'<meter value="{used}" max="{requested}" title="{share}">{share}</meter>' if requested else ""
    asked = _size(requested) if requested else "-"
    return (
        f'<tr{over}><td>{escape(name)}</td><td class="number">{_size(used)}</td>'
        f'<td class="number">{asked}</td><td>{bar} {share}</td></tr>'
    )


def _size(count: int) -> str:
    return f"{count / MEBIBYTE:.1f} MiB"
