"""Choose lines of a domain by their paths."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["path_matcher"]

_WILD = {"*": "[^/]*", "?": "[^/]"}


def path_matcher(glob: str) -> Callable[[str], bool]:
    """A test for paths such as ``devices/disk[2]/@type``.

    In `glob`, ``*`` and ``?`` stand for characters within a name and ``**`` for any number of names. A name
    without an index means each of its siblings, and whatever is below a match matches too: ``devices/disk``
    is every disk in full.
    """
    pattern = ""
    for number, name in enumerate(glob.strip("/").split("/")):
        if name == "**":
            pattern += "(?:/.*)?" if number else "(?:.*/)?"
            continue
        if pattern and not pattern.endswith("(?:.*/)?"):
            pattern += "/"
        pattern += "".join(_WILD.get(c, re.escape(c)) for c in name)
        if not name.endswith(("]", "()")) and not name.startswith("@"):
            pattern += r"(?:\[\d+\])?"
    matches = re.compile(f"{pattern}(?:/.*)?").fullmatch
    return lambda path: matches(path) is not None
