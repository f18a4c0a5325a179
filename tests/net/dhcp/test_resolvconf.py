"""Reading a pod's resolv.conf."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.net.dhcp import resolvconf


def test_both_families_and_domains_in_order() -> None:
    found = resolvconf.parse(
        "nameserver fd00::53\nnameserver 10.0.0.2\r\nsearch B.example a.example\nnameserver 10.0.0.1\nsearch c\n"
    )
    assert [str(address) for address in found.ipv4] == ["10.0.0.2", "10.0.0.1"]
    assert [str(address) for address in found.ipv6] == ["fd00::53"]
    assert found.search == ("b.example", "a.example", "c")


@pytest.mark.parametrize(
    "line",
    [
        "nameserver",
        "nameserver 1.1.1.1 2.2.2.2",
        "nameserver x",
        "nameserver fe80::1%eth0",
        "#nameserver 1.1.1.1",
    ],
)
def test_lines_that_name_no_server_do_not_count(line: str) -> None:
    found = resolvconf.parse(line + "\n")
    assert [str(address) for address in found.ipv4] == ["8.8.8.8"], "what stands in when there is none"
    assert found.ipv6 == ()
    assert found.search == ("cluster.local",)


def test_the_root_is_no_domain_to_search() -> None:
    """kubelet writes it into the pods of a node that has no search domains."""
    assert resolvconf.parse("search .\n").search == ("cluster.local",)
    assert resolvconf.parse("search a.example .\n").search == ("a.example",)


def test_one_of_another_family_is_enough() -> None:
    assert resolvconf.parse("nameserver fd00::1\n").ipv4 == ()


@pytest.mark.parametrize(
    ("search", "subdomain", "first"),
    [
        (("ns.svc.example", "example"), "sub", "sub.ns.svc.example"),
        (("sub.ns.svc.example",), "sub", None),
        (("example.org",), "sub", None),
        (("ns.svc.example",), "", None),
        (("a.svc.x", "longer.svc.x"), "sub", "sub.longer.svc.x"),
    ],
)
def test_the_subdomain_comes_before_the_longest_service_domain(
    search: tuple[str, ...], subdomain: str, first: str | None
) -> None:
    expected = search if first is None else (first, *search)
    assert resolvconf.with_subdomain(search, subdomain) == expected


@given(st.text())
def test_any_text_gives_a_server_and_a_domain(text: str) -> None:
    found = resolvconf.parse(text)
    assert found.ipv4 or found.ipv6
    assert found.search
