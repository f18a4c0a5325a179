"""The plain construction that the converter is measured against does the same work."""

from xml.etree import ElementTree

import orjson
import pytest

import kvnode
from bench.plain import plain_domain
from bench.sample import typical_context, typical_vmi


@pytest.mark.parametrize("disks", [0, 1, 4, 64, 800])
def test_both_give_the_same_domain(disks):
    source = orjson.dumps(typical_vmi(disks))
    ours = kvnode.convert(source, typical_context())
    assert ElementTree.canonicalize(ours) == ElementTree.canonicalize(plain_domain(source, typical_context()))
