"""The controllers' section of docs/performance.md: written by `bench.controller_load`, kept by `bench.report`."""

from __future__ import annotations

import re

BEGIN, END = "<!-- make bench-controller -->", "<!-- end of make bench-controller -->"
_SECTION = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
_EMPTY = f"{BEGIN}\n## The controllers\n\nNot measured yet: `make bench-controller`.\n{END}"


def section_of(page: str) -> str:
    """The section as it is in a page, or one that says that nothing was measured yet."""
    found = _SECTION.search(page)
    return found[0] if found else _EMPTY


def with_section(page: str, section: str) -> str:
    """The page with another section, in the place of its own or at its end."""
    if _SECTION.search(page):
        return _SECTION.sub(lambda _found: section, page)
    return f"{page.rstrip()}\n\n{section}\n"


def section(table: str, machine: str, load: float) -> str:
    """A section with this table."""
    return f"""{BEGIN}
## The controllers

`kvnode controller` with VMs that are all created at once, by `make bench-controller`: a real API server and etcd on
the same machine, pods and guests played by a stand-in that lets them run at once. Calls are counted from the API
server's audit log, events included; Leases, lists and watches are not.

Measured on: {machine}. Processes that ran or wanted to: {load:.1f} on average.

{table}

The steps of a restart are medians: milliseconds since the answer before (watch, queue, decision), those of the API
server's own, and when it was answered after the guest's failure; steps overlap.
{END}"""
