"""Lines are chosen by paths with wild cards."""

from __future__ import annotations

import pytest

from kvnode.provenance.selection import path_matcher


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("cpu", "cpu", True),
        ("cpu", "cpu/topology/@cores", True),
        ("cpu", "cputune", False),
        ("devices/disk", "devices/disk[12]/driver", True),
        ("devices/disk", "devices/disk", True),
        ("devices/disk[1]", "devices/disk[1]/@type", True),
        ("devices/disk[1]", "devices/disk[2]", False),
        ("devices/d*", "devices/disk[1]", True),
        ("devices/d*", "devices/disks/x", True),
        ("*/disk", "devices/disk[1]", True),
        ("*", "devices/disk[1]", True),
        ("**/@cache", "devices/disk[1]/driver/@cache", True),
        ("**/@cache", "@cache", True),
        ("**/@cache", "devices/disk[1]/driver/@cached", False),
        ("devices/**/@dev", "devices/disk[1]/target/@dev", True),
        ("devices/**/@dev", "devices/@dev", True),
        ("name/text()", "name/text()", True),
        ("devices/dis?", "devices/disk[3]", True),
        ("a.b", "axb", False),
    ],
)
def test_matching(glob: str, path: str, matches: bool) -> None:
    assert path_matcher(glob)(path) is matches
