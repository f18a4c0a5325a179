"""Names of a pod's interfaces."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.net import names

POD = {"name": "default", "pod": {}}
RED = {"name": "red", "multus": {"networkName": "r"}}
BLUE = {"name": "blue", "multus": {"networkName": "b"}}
OWN = {"name": "own", "multus": {"networkName": "o", "default": True}}


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (POD, ("eth0", "eth0")),
        (OWN, ("eth0", "eth0")),
        (RED, ("podb1f51a511f1", "net1")),
        (BLUE, ("pod16477688c0e", "net2")),
    ],
)
def test_candidates(network: dict[str, Any], expected: tuple[str, str]) -> None:
    assert names.candidates(network, [POD, OWN, RED, BLUE], []) == expected


def test_the_primary_interface_may_have_another_name() -> None:
    statuses = [{"name": "red"}, {"name": "default", "podInterfaceName": "ovn-udn1"}]
    assert names.candidates(POD, [POD], statuses) == ("ovn-udn1", "eth0")


def test_names_that_hang_on_an_interface() -> None:
    interface = names.hashed("red")
    assert (names.bridge(interface), names.nic(interface)) == ("k6t-b1f51a511f1", "b1f51a511f1-nic")
    assert names.tap(interface, RED) == "tapb1f51a511f1"
    assert (names.bridge("eth0"), names.nic("eth0"), names.tap("eth0", POD)) == (
        "k6t-eth0",
        "eth0-nic",
        "tap0",
    )
    longest = max(
        len(name) for name in (names.bridge(interface), names.nic(interface), names.tap(interface, RED))
    )
    assert longest <= 15, "the kernel takes no longer name"
