"""Siblings are matched by what they are, so that one change does not look like many."""

from __future__ import annotations

from kvnode.provenance.align import Delta, compare
from kvnode.provenance.tree import parse

DISK = '<disk><target dev="{dev}"/><alias name="ua-{name}"/></disk>'


def delta(old: str, new: str) -> Delta:
    return compare(parse(f"<domain>{old}</domain>".encode()), parse(f"<domain>{new}</domain>".encode()))


def test_nothing() -> None:
    assert delta("<a x='1'>t</a>", "<a x='1'>t</a>") == Delta()


def test_order_of_different_names_is_nothing() -> None:
    assert delta("<a/><b/>", "<b/><a/>") == Delta()


def test_values() -> None:
    found = delta('<a x="1" y="2">t</a>', '<a x="3" z="4">u</a>')
    assert found.changed == {"a/@x": ("1", "3"), "a/text()": ("t", "u")}
    assert found.gone == {"a/@y": "2"}
    assert found.come == {"a/@z": "4"}
    assert found.lost() == {"a/@x", "a/text()", "a/@y"}


def test_a_disk_that_goes_takes_only_itself() -> None:
    disks = [DISK.format(dev=f"vd{letter}", name=letter) for letter in "abc"]
    found = delta("".join(disks), disks[0] + disks[2])
    assert [element.path for element in found.removed] == ["disk[2]"]
    assert not found.changed
    assert not found.added


def test_a_disk_keeps_its_identity_when_its_target_moves() -> None:
    old = DISK.format(dev="vda", name="a") + DISK.format(dev="vdb", name="b")
    found = delta(old, DISK.format(dev="vda", name="b"))
    assert [element.path for element in found.removed] == ["disk[1]"]
    assert found.changed == {"disk[2]/target/@dev": ("vdb", "vda")}


def test_a_renamed_disk_is_the_same_disk() -> None:
    old = DISK.format(dev="vda", name="a") + DISK.format(dev="vdb", name="b")
    found = delta(old, old.replace("ua-b", "ua-x"))
    assert found.changed == {"disk[2]/alias/@name": ("ua-b", "ua-x")}


def test_a_numbered_element_is_matched_by_its_number() -> None:
    found = delta('<v id="0" on="y"/><v id="1" on="y"/>', '<v id="1" on="n"/>')
    assert [element.path for element in found.removed] == ["v[1]"]
    assert found.changed == {"v[2]/@on": ("y", "n")}


def test_what_is_new() -> None:
    found = delta("<d><a/></d>", "<d><a/><b><c/></b></d>")
    assert [element.path for element in found.added] == ["d/b"]
    assert not found.lost()
