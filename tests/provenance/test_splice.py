"""Looking at the differing bytes alone finds what looking at whole domains finds."""

from __future__ import annotations

import pytest

import kvnode
from kvnode.provenance.align import compare
from kvnode.provenance.document import Document
from kvnode.provenance.splice import Baseline
from kvnode.provenance.tree import parse
from tests.provenance.cases import CONTEXT, NAMES, VMI, load


@pytest.mark.parametrize("name", NAMES[::3])
def test_as_whole_domains(name: str) -> None:
    vmi, context = load(name)
    prebuilt = kvnode.ConverterContext(context)
    baseline = Baseline(kvnode.convert(vmi, prebuilt))
    document = Document(vmi)
    compared = 0
    for node in document.nodes[1:]:
        try:
            xml = kvnode.convert(document.without(node), prebuilt)
        except kvnode.ConversionError:
            continue
        assert baseline.compare(xml).lost() == compare(baseline.domain, parse(xml)).lost(), node.path
        compared += 1
    assert compared > 20


def test_of_other_domains_altogether() -> None:
    one = kvnode.convert(VMI, CONTEXT)
    baseline = Baseline(one)
    assert not baseline.compare(one).lost()
    for other in (b"<domain/>", b"<other>x</other>", one.replace(b"<devices>", b'<devices x="1">')):
        assert baseline.compare(other).lost() == compare(parse(one), parse(other)).lost()


def test_added_at_either_end() -> None:
    baseline = Baseline(b"<domain><a/><devices><d i='1'/></devices></domain>")
    for other in (
        b"<domain><z/><a/><devices><d i='1'/></devices></domain>",
        b"<domain><a/><devices><d i='1'/><e/></devices></domain>",
        b"<domain><a/><devices><d i='1'/></devices><z/></domain>",
    ):
        delta = baseline.compare(other)
        assert [len(delta.added), delta.lost()] == [1, set()]
