"""The agent's section of docs/performance.md: written by `bench.agent_load`, kept by `bench.report`."""

from __future__ import annotations

import re
from collections.abc import Sequence

BEGIN, END = "<!-- make bench-agent -->", "<!-- end of make bench-agent -->"
_SECTION = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
_EMPTY = f"{BEGIN}\n## The node agent\n\nNot measured yet: `make bench-agent`.\n{END}"


def section_of(page: str) -> str:
    """The section as it is in a page, or one that says that nothing was measured yet."""
    found = _SECTION.search(page)
    return found[0] if found else _EMPTY


def with_section(page: str, section: str) -> str:
    """The page with another section, in the place of its own or at its end."""
    if _SECTION.search(page):
        return _SECTION.sub(lambda _found: section, page)
    return f"{page.rstrip()}\n\n{section}\n"


def section(vmis: int, rows: Sequence[Sequence[str]], machine: str, load: float) -> str:
    """A section with these rows: what, how much, the limit."""
    lines = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"""{BEGIN}
## The node agent

`kvnode agent` with {vmis} VMIs on its node, by `make bench-agent`: a real API server; each launcher is a process in
namespaces of its own that speaks cmd.v1 and runs no guest (`tests/agent/podded.py`).

Measured on: {machine}. Processes that ran or wanted to: {load:.1f} on average; the agent and its launchers
ran ahead of others (nice -10).

| | | must be below |
| --- | --: | --: |
{lines}

At rest each launcher is greeted every eleven seconds and called every hundred, each VM's memory is measured every five
minutes, its domain asked for and its VMI looked through as often. A Sync's delay is that from a second watcher's
sight of the change, the best of several rounds. VMIs of other nodes are not sent to the agent.
{END}"""
