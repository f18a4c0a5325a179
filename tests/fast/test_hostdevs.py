"""Devices of the host given to the guest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fast.helpers import canonical, devices, domain, error_field, merged, xml

MDEV_A = "033214c0-2173-fd4b-426b-daf40a833ca2"
MDEV_B = "be23155e-ec71-4057-bf80-b49fe5c4cc29"


def hostdevs(fragment: dict[str, Any], **context: Any) -> list[str]:
    return [canonical(found) for found in domain(fragment, **context).findall("devices/hostdev")]


def pci(alias: str, bus: str, inside: str = "", display: str = "") -> str:
    return xml(f"""
        <hostdev type="pci" managed="no" {display}>
          <source><address type="pci" domain="0x0000" bus="0x{bus}" slot="0x00" function="0x0"/></source>
          {inside}<alias name="ua-{alias}"/>
        </hostdev>""")


def mdev(alias: str, uuid: str, display: str = "", model: str = "vfio-pci") -> str:
    return xml(f"""
        <hostdev type="mdev" mode="subsystem" model="{model}" {display}>
          <source><address uuid="{uuid}"/></source><alias name="ua-{alias}"/>
        </hostdev>""")


def usb(alias: str, bus: str, number: str) -> str:
    return xml(f"""
        <hostdev type="usb" mode="subsystem">
          <source><address bus="{bus}" device="{number}"/></source><alias name="ua-usb-host-{alias}"/>
        </hostdev>""")


def device(name: str, resource: str = "vendor.com/dev", **more: Any) -> dict[str, Any]:
    return {"name": name, "deviceName": resource} | more


def test_devices_get_the_addresses_of_their_resource_in_turn() -> None:
    env = {"PCI_RESOURCE_VENDOR_COM_DEV": "0000:81:00.0,0000:82:00.0,"}
    found = hostdevs(devices(hostDevices=[device("a"), device("b")]), env=env)
    assert found == [pci("hostdevice-a", "81"), pci("hostdevice-b", "82")]


def test_an_address_under_two_resources_is_given_once() -> None:
    env = {
        "PCI_RESOURCE_X_ONE": "0000:81:00.0,0000:82:00.0",
        "PCI_RESOURCE_X_TWO": "0000:81:00.0,0000:83:00.0",
    }
    listed = [device("a", "x/one"), device("b", "x/two"), device("c", "x/one")]
    found = hostdevs(devices(hostDevices=listed), env=env)
    assert found == [pci("hostdevice-a", "81"), pci("hostdevice-b", "83"), pci("hostdevice-c", "82")]


def test_pci_comes_before_mediated_before_usb() -> None:
    env = {
        "USB_RESOURCE_X_USB": "1:4",
        "MDEV_PCI_RESOURCE_X_MDEV": MDEV_A,
        "PCI_RESOURCE_X_PCI": "0000:81:00.0",
    }
    listed = [device("u", "x/usb"), device("m", "x/mdev"), device("p", "x/pci")]
    found = hostdevs(devices(hostDevices=listed), env=env)
    assert found == [pci("hostdevice-p", "81"), mdev("hostdevice-m", MDEV_A), usb("u", "1", "4")]


def test_generic_devices_come_before_gpus_and_have_addresses_apart() -> None:
    env = {"PCI_RESOURCE_VENDOR_COM_DEV": "0000:81:00.0"}
    found = hostdevs(devices(gpus=[device("g")], hostDevices=[device("h")]), env=env)
    assert found == [pci("hostdevice-h", "81"), pci("gpu-g", "81")]


@pytest.mark.parametrize(
    ("env", "at"),
    [
        ({}, "[0].deviceName"),
        ({"PCI_RESOURCE_VENDOR_COM_DEV": "0000:81:00.0,"}, "[1].deviceName"),  # one for two
        (
            {
                "PCI_RESOURCE_VENDOR_COM_DEV": "0000:81:00.0,0000:82:00.0",
                "USB_RESOURCE_VENDOR_COM_DEV": "1:2",
            },
            "",
        ),  # too many
    ],
)
def test_each_device_needs_one_address(env: dict[str, str], at: str) -> None:
    field = error_field(devices(hostDevices=[device("a"), device("b")]), env=env)
    assert field == f"spec.domain.devices.hostDevices{at}"


def test_each_gpu_needs_one_address() -> None:
    assert error_field(devices(gpus=[device("a")])) == "spec.domain.devices.gpus[0].deviceName"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PCI_RESOURCE_VENDOR_COM_DEV", "81:00.0"),
        ("USB_RESOURCE_VENDOR_COM_DEV", "14"),
        ("USB_RESOURCE_VENDOR_COM_DEV", "1:4:2"),
    ],
)
def test_addresses_that_are_none(variable: str, value: str) -> None:
    assert error_field(devices(hostDevices=[device("a")]), env={variable: value}) == f"context.env.{variable}"


def test_pci_devices_take_slots_of_the_root_complex() -> None:
    env = {"PCI_RESOURCE_VENDOR_COM_DEV": "0000:81:00.0"}
    annotation = {"metadata": {"annotations": {"kubevirt.io/placePCIDevicesOnRootComplex": "true"}}}
    found = hostdevs(merged(devices(hostDevices=[device("a")]), annotation), env=env)
    slot = '<address type="pci" domain="0x0000" bus="0x00" slot="0x02" function="0x0"/>'
    assert found == [pci("hostdevice-a", "81", slot)]


# --- displays of GPUs ---------------------------------------------------------------------------------------

ON_ON = 'display="on" ramfb="on"'
ON = 'display="on"'


def display(**fields: Any) -> dict[str, Any]:
    return {"virtualGPUOptions": {"display": fields}}


def test_the_first_vgpu_shows_when_no_gpu_says_otherwise() -> None:
    env = {"MDEV_PCI_RESOURCE_VENDOR_COM_DEV": f"{MDEV_A},{MDEV_B}"}
    found = hostdevs(devices(gpus=[device("a"), device("b", virtualGPUOptions={})]), env=env)
    assert found == [mdev("gpu-a", MDEV_A, ON_ON), mdev("gpu-b", MDEV_B)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (display(), ON_ON),
        (display(ramFB={}), ON_ON),
        (display(enabled=True, ramFB={"enabled": False}), ON),
        (display(enabled=False, ramFB={"enabled": True}), ""),
    ],
)
def test_a_vgpu_with_options_shows_unless_they_say_otherwise(options: dict[str, Any], expected: str) -> None:
    env = {"MDEV_PCI_RESOURCE_VENDOR_COM_DEV": f"{MDEV_A},{MDEV_B}"}
    found = hostdevs(devices(gpus=[device("a"), device("b", **options)]), env=env)
    assert found == [mdev("gpu-a", MDEV_A), mdev("gpu-b", MDEV_B, expected)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ""),
        (display(), ""),
        (display(enabled=True), ON),
        (display(enabled=True, ramFB={}), ON),
        (display(enabled=True, ramFB={"enabled": True}), ON_ON),
    ],
)
def test_a_whole_gpu_shows_only_on_request(options: dict[str, Any], expected: str) -> None:
    env = {"PCI_RESOURCE_VENDOR_COM_DEV": "0000:81:00.0"}
    found = hostdevs(devices(gpus=[device("a", **options)]), env=env)
    assert found == [pci("gpu-a", "81", display=expected)]


# --- resource claims ----------------------------------------------------------------------------------------

CLAIMS = {
    "claim": {"card": {"pciBusID": "0000:81:00.0"}, "slice": {"pciBusID": "0000:81:00.0", "mdevUUID": MDEV_A}}
}


def claimed(name: str, request: str) -> dict[str, Any]:
    return {"name": name, "claimName": "claim", "requestName": request}


def test_claimed_devices() -> None:
    fragment = devices(
        hostDevices=[claimed("a", "slice"), claimed("b", "card")], gpus=[claimed("c", "slice")]
    )
    assert hostdevs(fragment, resourceClaims=CLAIMS) == [
        mdev("dra-hostdevice-a", MDEV_A),
        pci("dra-hostdevice-b", "81"),
        mdev("dra-gpu-c", MDEV_A, ON_ON),
    ]


def test_claimed_mediated_devices_of_s390x_are_crypto_adapters() -> None:
    fragment = merged(devices(hostDevices=[claimed("a", "slice")]), {"spec": {"architecture": "s390x"}})
    found = hostdevs(fragment, architecture="s390x", resourceClaims=CLAIMS)
    assert found == [mdev("dra-hostdevice-a", MDEV_A, model="vfio-ap")]


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"claimName": "claim", "requestName": "other"}, "claimName"),
        ({"claimName": "", "requestName": "card"}, "claimName"),
        ({"claimName": "claim"}, "requestName"),
    ],
)
def test_claims_that_the_context_does_not_know(fields: dict[str, str], at: str) -> None:
    field = error_field(devices(gpus=[{"name": "a"} | fields]), resourceClaims=CLAIMS)
    assert field == f"spec.domain.devices.gpus[0].{at}"


# --- SR-IOV -------------------------------------------------------------------------------------------------


def sriov(network: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return merged(
        devices(interfaces=[{"name": "net1", "sriov": {}} | fields]),
        {"spec": {"networks": [{"name": "net1"} | (network or {"multus": {"networkName": "nad"}})]}},
    )


def network_info(address: str = "0000:41:00.0") -> dict[str, Any]:
    return {
        "interfaces": [{"network": "net1", "deviceInfo": {"type": "pci", "pci": {"pci-address": address}}}]
    }


def test_an_sriov_card() -> None:
    fragment = sriov(bootOrder=3, pciAddress="0000:83:0c.0")
    inside = '<boot order="3"/><address type="pci" domain="0x0000" bus="0x83" slot="0x0c" function="0x0"/>'
    root = domain(fragment, networkInfo=network_info())
    assert [canonical(found) for found in root.findall("devices/hostdev")] == [
        pci("sriov-net1", "41", inside)
    ]
    assert root.find("devices/interface") is None


def test_a_card_that_is_not_plugged_yet_is_left_out() -> None:
    assert hostdevs(sriov()) == []


def test_a_plugged_card_without_an_address() -> None:
    status = {"status": {"interfaces": [{"name": "net1", "infoSource": "domain, multus-status"}]}}
    assert error_field(merged(sriov(), status)) == "spec.domain.devices.interfaces[0].sriov"


def test_a_bad_address_of_a_card() -> None:
    field = error_field(sriov(), networkInfo=network_info("41:00"))
    assert field == "context.networkInfo.interfaces[0].deviceInfo.pci.pci-address"


def test_a_card_of_a_resource_claim() -> None:
    network = {"resourceClaim": {"claimName": "claim", "requestName": "card"}}
    assert hostdevs(sriov(network), resourceClaims=CLAIMS) == [pci("sriov-net1", "81")]


def test_an_address_of_a_card_is_given_once() -> None:
    fragment = sriov()
    fragment["spec"]["domain"]["devices"]["interfaces"] *= 2
    field = error_field(fragment, networkInfo=network_info())
    assert field == "spec.domain.devices.interfaces[1].name"
