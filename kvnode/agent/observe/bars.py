"""Bars of the page: how much of what was requested is used."""

from __future__ import annotations

from html import escape

from kvnode.agent.observe.headroom import NEARLY

MIB, GIB = 1 << 20, 1 << 30
_LARGE = 10 * GIB


def size(count: float) -> str:
    """A number of bytes for people."""
    return f"{count / GIB:.1f} GiB" if abs(count) >= _LARGE else f"{count / MIB:,.1f} MiB"


def tone(used: float, of: float) -> str:
    """Class of a bar: over its request, nearly so, or neither."""
    if used > of:
        return "over"
    return "near" if used >= NEARLY * of else ""


def bar(used: float, of: float, label: str, *, judged: bool = True, kind: str = "") -> str:
    """A bar of ``used`` against ``of``; of one that is overrun the part beyond the request looks different.

    ``judged``: whether using it all is bad. ``label`` is what those hear who do not see it.
    """
    if of <= 0:
        return ""
    whole = max(used, of)
    parts = [f'<rect width="{100 * min(used, of) / whole:.1f}%" height="8"/>']
    if used > of:
        end = 100 * of / whole
        parts.append(f'<rect class="beyond" x="{end:.1f}%" width="{100 - end:.1f}%" height="8"/>')
    name = " ".join(filter(None, ("bar", kind, tone(used, of) if judged else "")))
    return f'<svg class="{name}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def row(
    name: str, used: int, requested: int, *, judged: bool = True, kind: str = "", is_sum: bool = False
) -> str:
    """A line of a VM's table."""
    judgement = tone(used, requested) if judged and requested else ""
    over = f'<span class="over">{size(used - requested)} over</span> ' if judgement == "over" else ""
    text = f"{size(used)} of {size(requested)}"
    kind_of_row = ' class="sum"' if is_sum else ""
    return (
        f'<tr{kind_of_row}><th scope="row">{escape(name)}</th>'
        f'<td class="number">{over}{size(used)}</td>'
        f'<td class="number">{size(requested) if requested else "-"}</td>'
        f'<td class="wide">{bar(used, requested, text, judged=judged, kind=kind)}</td></tr>'
    )
