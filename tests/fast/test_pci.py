"""PCI addresses on the root complex."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fast.helpers import devices, domain, error_field, merged

ON_ROOT = {"metadata": {"annotations": {"kubevirt.io/placePCIDevicesOnRootComplex": "true"}}}


def with_disks(count: int, **first: Any) -> dict[str, Any]:
    disks: list[dict[str, Any]] = [{"name": f"d{i}", "disk": {"bus": "virtio"}} for i in range(count)]
    if disks:
        disks[0]["disk"].update(first)
    volumes = [{"name": disk["name"], "emptyDisk": {}} for disk in disks]
    return merged(
        merged(devices(disks=disks, autoattachMemBalloon=True), {"spec": {"volumes": volumes}}), ON_ROOT
    )


def slots(root: Any, path: str) -> list[int]:
    return [int(address.get("slot"), 16) for address in root.findall(f"devices/{path}/address")]


def test_controllers_come_before_disks_and_the_balloon_is_last() -> None:
    root = domain(with_disks(2))
    assert slots(root, "controller") == [2, 3, 4]
    assert slots(root, "disk") == [5, 6]
    assert slots(root, "memballoon") == [7]


def test_nothing_is_placed_unless_asked_for() -> None:
    assert domain(merged(with_disks(1), {"metadata": {"annotations": None}})).findall(".//address") == []


@pytest.mark.parametrize("value", ["True", "1", "false", ""])
def test_only_the_word_true_asks_for_it(value: str) -> None:
    other = {"metadata": {"annotations": {"kubevirt.io/placePCIDevicesOnRootComplex": value}}}
    assert slots(domain(merged(with_disks(1), other)), "disk") == []


def test_s390x_has_no_root_complex() -> None:
    assert slots(domain(with_disks(1), architecture="s390x"), "disk") == []


def test_a_named_address_takes_no_slot() -> None:
    root = domain(with_disks(2, pciAddress="0000:81:11.1"))
    assert slots(root, "disk") == [0x11, 5]


def test_the_pcie_root_itself_takes_no_slot() -> None:
    root = domain(
        merged(with_disks(1), {"metadata": {"annotations": {"kubevirt.io/disablePCIHole64": "true"}}})
    )
    assert slots(root, "controller") == [2, 3, 4]


def test_the_slots_of_sound_and_sata_are_left_out_and_the_bus_has_an_end() -> None:
    root = domain(with_disks(24))
    assert slots(root, "disk") == [*range(5, 0x1B), 0x1C, 0x1D]
    assert slots(root, "memballoon") == [0x1E]
    field = "metadata.annotations.kubevirt.io/placePCIDevicesOnRootComplex"
    assert error_field(with_disks(25)) == field
