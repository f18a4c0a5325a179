"""The small readers of names, addresses, paths and encoded data."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.spec.validation import names, syntax


@given(st.binary(max_size=40))
def test_the_length_of_base64(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert syntax.base64_length(text) == len(data)
    assert syntax.base64_length(f"{text[:3]}\r\n{text[3:]}") == len(data)


@pytest.mark.parametrize("text", ["eA", "eA=", "eA==eA==", "e===", "eA-_", "e A=", "é==="])
def test_what_is_no_base64(text: str) -> None:
    assert syntax.base64_length(text) is None


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("q35*", "q35", True),
        ("pc-q35*", "pc-q35-8.2", True),
        ("q35*", "pc-q35", False),
        ("*", "a/b", False),
        ("v?rt", "virt", True),
        ("v[a-i]rt", "virt", True),
        ("v[^a-i]rt", "virt", False),
        ("a\\*", "a*", True),
        ("a\\*", "ab", False),
        ("a.c", "abc", False),
        ("a[", "a[", False),
        ("a[z-a]", "az", False),
    ],
)
def test_globs(pattern: str, text: str, matches: bool) -> None:
    assert syntax.glob_matches(pattern, text) is matches


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_pattern_is_answered(pattern: str, text: str) -> None:
    assert syntax.glob_matches(pattern, text) in (True, False)


@pytest.mark.parametrize("path", ["/a", "/a/", "/a/b.img"])
def test_paths(path: str) -> None:
    assert syntax.path_fault(path) is None


@pytest.mark.parametrize("path", ["/", "a", "//a", "/a//b", "/a/./b", "/a/..", "/a//", "/.."])
def test_what_is_no_path_of_a_file(path: str) -> None:
    assert syntax.path_fault(path)


@pytest.mark.parametrize(
    ("text", "ip", "ipv4"),
    [
        ("192.0.2.1", True, True),
        ("192.0.2.01", False, False),
        ("192.0.2", False, False),
        ("::1", True, False),
        ("::ffff:192.0.2.1", True, True),
        ("fe80::1%eth0", False, False),
        ("3221225985", False, False),
        ("", False, False),
    ],
)
def test_ip_addresses(text: str, ip: bool, ipv4: bool) -> None:
    assert (syntax.is_ip(text), syntax.is_ipv4(text)) == (ip, ipv4)


@pytest.mark.parametrize(
    ("fault", "good", "bad"),
    [
        (names.dns_label_fault, ["a", "a-1", "1", "a" * 63], ["", "-a", "a-", "A", "a.b", "a\n", "a" * 64]),
        (names.dns_subdomain_fault, ["a.b-c.d", "a" * 253], ["", "a..b", ".a", "a_b", "a" * 254]),
        (
            names.qualified_name_fault,
            ["zone", "a.b/Zone_1", "topology.kubernetes.io/zone"],
            ["", "/a", "a/", "a/b/c", "A/b", "-a", "a" * 64],
        ),
        (names.label_value_fault, ["", "a", "A.b_c-1"], ["a b", "-a", "a-", "a" * 64]),
        (names.port_name_fault, ["http", "a-1"], ["", "1", "a--b", "-a", "a-", "A", "a" * 16]),
    ],
)
def test_names(fault: Callable[[str], str | None], good: list[str], bad: list[str]) -> None:
    assert [text for text in good if fault(text)] == []
    assert [text for text in bad if not fault(text)] == []
