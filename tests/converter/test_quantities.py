"""The core reads quantities itself, without Python: it must read them as kvnode.Quantity does."""

import json
import re
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvnode

CONTEXT = kvnode.ConverterContext({"kvmAvailable": True})


def memory(text) -> int:
    vmi = {"metadata": {"name": "x"}, "spec": {"domain": {"memory": {"guest": text}}}}
    return int(re.search(rb'<memory unit="b">(\d+)<', kvnode.convert(json.dumps(vmi), CONTEXT))[1])


def sockets(text) -> int:
    vmi = {"metadata": {"name": "x"}, "spec": {"domain": {"resources": {"requests": {"cpu": text}}}}}
    return int(re.search(rb'sockets="(\d+)"', kvnode.convert(json.dumps(vmi), CONTEXT))[1])


digits = st.text("0123456789", min_size=0, max_size=22)
suffixes = st.sampled_from(
    [
        "",
        "n",
        "u",
        "m",
        "k",
        "M",
        "G",
        "T",
        "P",
        "E",
        "Ki",
        "Mi",
        "Gi",
        "Ti",
        "Pi",
        "Ei",
        "e3",
        "E-2",
        "e+1",
        "K",
        "ki",
        "i",
        "x",
    ]
)
quantities = st.builds(
    lambda sign, whole, dot, fraction, suffix: sign + whole + (dot + fraction if dot else "") + suffix,
    st.sampled_from(["", "", "+", "-"]),
    digits,
    st.sampled_from(["", "."]),
    digits,
    suffixes,
)


def is_beyond_int64(text) -> bool:
    """A decimal amount that no int64 holds: the reference and Quantity wrap around, convert refuses."""
    number = re.fullmatch(r"[+-]?(\d*\.?\d*)(?:([numkMGTPE]?)|[eE]([+-]?\d+))", text)
    if not number or not number[1].strip("."):
        return False
    powers = dict(zip("num kMGTPE", range(-9, 19, 3), strict=False))
    tens = int(number[3]) if number[3] else powers[number[2] or " "]
    return Fraction(number[1] if number[1].strip(".") else 0) * Fraction(10) ** tens >= 2**63


@given(quantities | st.text(max_size=8))
@settings(deadline=None, max_examples=1000)
def test_memory_is_the_quantity_or_one_byte_less(text):
    if is_beyond_int64(text):
        with pytest.raises(kvnode.ConversionError):
            memory(text)
        return
    try:
        value = kvnode.Quantity(text).value
    except ValueError:
        with pytest.raises(kvnode.ConversionError):
            memory(text)
        return
    if text.startswith("-"):  # the reference's arithmetic wraps around there
        with suppress(kvnode.ConversionError):
            assert memory(text) == 0
        return
    got = None
    with suppress(kvnode.ConversionError):  # 0.5 bytes and the like: nothing is left of them
        got = memory(text)
    assert got in (value, value - 1, None)
    assert got is not None or value <= 1


@given(st.integers(1, 16384), st.sampled_from(["{}", "{}000m", "{}.000", "0{}", "+{}"]))
@settings(deadline=None)
def test_cpu_is_the_quantity(n, form):
    text = form.format(n)
    assert kvnode.Quantity(text).value == n
    assert sockets(text) == n


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("1Gi", 2**30),
        ("1.5Gi", 3 * 2**29 - 1),  # kept as a decimal by the reference, which then takes one byte off
        ("1Ti", 2**40),
        ("128Ti", 2**47 - 1),
        ("1536M", 1536 * 10**6),
        ("1.5G", 1500 * 10**6),
        ("2048M", 2048 * 10**6),
        ("1e9", 10**9),
        (1073741824, 2**30),
        ("0", 0),
        (".0001000000000000003Ei", 115292150460685),  # nineteen digits behind the point still count
        ("16Ei", 2**63 - 2),
    ],
)
def test_known_amounts_of_memory(text, bytes_):
    assert memory(text) == bytes_


def test_a_number_with_a_fraction():
    assert memory(1.5) == 1
