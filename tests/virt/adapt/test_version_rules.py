"""Each rule for a version of libvirt: what it changes, for which versions, and what it leaves alone."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from kvnode.virt.adapt import VERSION_RULES, adapt
from kvnode.virt.adapt.libvirt_rules import LIBVIRT_RULES

OLD, NEW = 9_000_000, 12_000_000


def adapted(inside: str, version: int = OLD) -> str:
    """What is inside a domain, adapted to a version, on one line."""
    xml = adapt(f"<domain>{inside}</domain>", version).xml
    text = ET.canonicalize(xml, strip_text=True)
    return text.removeprefix("<domain>").removesuffix("</domain>")


def disks(*drivers: str) -> str:
    return "<devices>" + "".join(f"<disk>{driver}</disk>" for driver in drivers) + "</devices>"


SHARED = '<driver name="qemu"><iothreads><iothread id="3"></iothread><iothread id="4"></iothread></iothreads></driver>'


def test_disks_take_the_threads_of_a_pool_in_turn() -> None:
    threads = ("3", "4", "3")
    expected = disks(*(f'<driver iothread="{thread}" name="qemu"></driver>' for thread in threads))
    assert adapted(disks(SHARED, SHARED, SHARED)) == expected
    assert adapted(disks(SHARED), NEW) == disks(SHARED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            disks('<blockio discard_granularity="4096" logical_block_size="512"></blockio>'),
            disks('<blockio logical_block_size="512"></blockio>'),
        ),
        (disks('<blockio discard_granularity="4096"></blockio>'), disks("")),
        ('<os><nvram format="raw">/x</nvram></os>', "<os><nvram>/x</nvram></os>"),
        (
            '<features><hyperv><tlbflush state="on"><direct state="on"></direct></tlbflush></hyperv></features>',
            '<features><hyperv><tlbflush state="on"></tlbflush></hyperv></features>',
        ),
        (
            '<devices><hostdev display="on" mode="subsystem" ramfb="on" type="pci"></hostdev></devices>',
            '<devices><hostdev mode="subsystem" type="pci"></hostdev></devices>',
        ),
    ],
    ids=["discard-granularity", "discard-granularity-alone", "nvram-format", "tlbflush-modes", "pci-display"],
)
def test_what_an_old_libvirt_does_not_know_is_left_out(before: str, after: str) -> None:
    assert adapted(before) == after
    assert adapted(before, NEW) == before


@pytest.mark.parametrize(
    "kept",
    [
        '<os><nvram format="qcow2">/x</nvram></os>',
        '<devices><hostdev display="on" mode="subsystem" ramfb="on" type="mdev"></hostdev></devices>',
        disks('<driver iothread="1" name="qemu"></driver>'),
    ],
)
def test_what_it_knows_is_kept(kept: str) -> None:
    assert adapted(kept) == kept


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<interface type=""></interface>', '<interface type="user"></interface>'),
        ("<interface></interface>", '<interface type="user"></interface>'),
        (
            '<hostdev mode="subsystem"><source><address bus="0x1" type="pci"></address></source></hostdev>',
            '<hostdev mode="subsystem"><source><address bus="0x1"></address></source></hostdev>',
        ),
    ],
)
def test_the_schema_gets_its_spelling(before: str, after: str, version: int) -> None:
    assert adapted(f"<devices>{before}</devices>", version) == f"<devices>{after}</devices>"


def test_adapting_again_changes_nothing() -> None:
    once = adapt(f"<domain>{disks(SHARED, SHARED)}</domain>", OLD)
    twice = adapt(once.xml, OLD)
    assert once.rules == ("one-iothread-a-disk",)
    assert "one I/O thread" in once.notes[0]
    assert (twice.xml, twice.rules, twice.notes) == (once.xml, (), ())


def test_every_rule_has_a_name_of_its_own_and_says_why() -> None:
    rules = (*LIBVIRT_RULES, *VERSION_RULES)
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(rule.why for rule in rules)
    assert all(rule.until is not None for rule in VERSION_RULES)
