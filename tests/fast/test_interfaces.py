"""Emulated network cards."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.fast.helpers import canonical, devices, domain, error_field, merged, xml

MINIMAL = '<model type="virtio-non-transitional"/><alias name="ua-default"/><rom enabled="no"/>'


def nic(**fields: Any) -> dict[str, Any]:
    """A VMI with one interface and its network, both called default."""
    return merged(
        devices(interfaces=[{"name": "default"} | fields]),
        {"spec": {"networks": [{"name": "default", "pod": {}}]}},
    )


def interface(fragment: dict[str, Any], attachment: str = "tap", **context: Any) -> ET.Element:
    root = domain(fragment, domainAttachmentByInterface={"default": attachment}, **context)
    found = root.find("devices/interface")
    assert found is not None
    return found


def test_a_tap_device_with_nothing_asked() -> None:
    found = interface(nic(masquerade={}))
    assert canonical(found) == xml(f'<interface type="ethernet">{MINIMAL}</interface>')


def test_everything_asked() -> None:
    fragment = nic(
        bridge={}, model="e1000", macAddress="de:ad:00:00:be:af", bootOrder=2, pciAddress="0000:81:01.0",
        acpiIndex=7, state="down",
    )  # fmt: skip
    assert canonical(interface(fragment)) == xml("""
        <interface type="ethernet">
          <address type="pci" domain="0x0000" bus="0x81" slot="0x01" function="0x0"/>
          <model type="e1000"/><mac address="de:ad:00:00:be:af"/><boot order="2"/><link state="down"/>
          <alias name="ua-default"/><acpi index="7"/>
        </interface>""")


def test_text_is_escaped() -> None:
    found = interface(nic(bridge={}, model='"<&'))
    assert found.find("model[@type='\"<&']") is not None


@pytest.mark.parametrize(
    ("arch", "transitional", "model"),
    [
        ("amd64", True, "virtio-transitional"),
        ("arm64", False, "virtio-non-transitional"),
        ("s390x", True, "virtio"),
    ],
)
def test_the_virtio_model_follows_the_architecture(arch: str, transitional: bool, model: str) -> None:
    fragment = merged(nic(model="virtio"), devices(useVirtioTransitional=transitional))
    found = interface(fragment, architecture=arch).find("model")
    assert found is not None
    assert found.get("type") == model


def test_s390x_has_no_option_rom_to_turn_off() -> None:
    assert interface(nic(bridge={}), architecture="s390x").find("rom") is None


@pytest.mark.parametrize(("cores", "queues"), [(3, "3"), (300, "256")])
def test_a_queue_for_each_vcpu_up_to_256(cores: int, queues: str) -> None:
    fragment = merged(
        nic(bridge={}),
        {"spec": {"domain": {"cpu": {"cores": cores}, "devices": {"networkInterfaceMultiqueue": True}}}},
    )
    driver = interface(fragment).find("driver")
    assert driver is not None
    assert dict(driver.attrib) == {"name": "vhost", "queues": queues}


def test_other_models_have_no_driver() -> None:
    fragment = merged(nic(model="rtl8139"), devices(networkInterfaceMultiqueue=True))
    assert interface(fragment).find("driver") is None


def test_encrypted_memory_needs_iommu_and_no_option_rom() -> None:
    fragment = merged(nic(bridge={}, bootOrder=1), {"spec": {"domain": {"launchSecurity": {"sev": {}}}}})
    found = interface(fragment)
    driver = found.find("driver")
    assert driver is not None
    assert dict(driver.attrib) == {"name": "vhost", "iommu": "on"}
    assert found.find("rom[@enabled='no']") is not None


def test_absent_interfaces_are_left_out_even_without_a_network() -> None:
    fragment = devices(interfaces=[{"name": "gone", "state": "absent"}])
    assert domain(fragment).find("devices/interface") is None


@pytest.mark.parametrize(("attachment", "count"), [("tap", 1), ("managedTap", 0)])
def test_a_binding_plugin_attaches_by_tap_or_by_itself(attachment: str, count: int) -> None:
    context = {"domainAttachmentByInterface": {"default": attachment}}
    assert len(domain(nic(binding={"name": "plugin"}), **context).findall("devices/interface")) == count


def test_an_interface_without_a_network() -> None:
    assert error_field(devices(interfaces=[{"name": "x"}])) == "spec.domain.devices.interfaces[0].name"


@pytest.mark.parametrize("address", ["81:01.0", "0000:81:01.8", "0000:81:01.0 ", "0000-81-01.0"])
def test_a_bad_pci_address(address: str) -> None:
    assert error_field(nic(pciAddress=address)) == "spec.domain.devices.interfaces[0].pciAddress"


def test_the_root_complex_gives_slots_in_order() -> None:
    fragment = merged(
        nic(bridge={}), {"metadata": {"annotations": {"kubevirt.io/placePCIDevicesOnRootComplex": "true"}}}
    )
    address = interface(fragment).find("address")
    assert address is not None
    assert address.get("slot") == "0x02"


# --- passt --------------------------------------------------------------------------------------------------

STATUS = {"status": {"interfaces": [{"name": "default", "podInterfaceName": "eth0"}]}}


def forwards(ports: list[dict[str, Any]], **annotations: str) -> list[tuple[str | None, list[str]]]:
    """Protocol and ports of each forward; ports that are excluded with a minus."""
    fragment = merged(
        merged(nic(passtBinding={}, ports=ports), STATUS), {"metadata": {"annotations": annotations}}
    )
    return [
        (
            forward.get("proto"),
            [("-" if r.get("exclude") == "yes" else "") + r.attrib["start"] for r in forward],
        )
        for forward in interface(fragment, "").findall("portForward")
    ]


def test_passt_binds_to_the_pod_interface() -> None:
    found = interface(merged(nic(passtBinding={}, bootOrder=1, state="down"), STATUS), "")
    assert canonical(found) == xml("""
        <interface type="vhostuser">
          <source dev="eth0"/><model type="virtio-non-transitional"/><alias name="ua-default"/>
          <backend type="passt" logFile="/var/run/kubevirt/passt.log"/>
          <portForward proto="tcp"/><portForward proto="udp"/>
        </interface>""")


def test_passt_forwards_the_ports_listed() -> None:
    ports: list[dict[str, Any]] = [
        {"port": 80}, {"port": 53, "protocol": "UDP"}, {"port": 443, "protocol": "Tcp"},
        {"port": -1}, {"port": 7, "protocol": "SCTP"},
    ]  # fmt: skip
    assert forwards(ports) == [("tcp", ["80", "443"]), ("udp", ["53"])]


def test_passt_forwards_all_ports_when_none_listed_can_be() -> None:
    assert forwards([{"port": 7, "protocol": "SCTP"}]) == [("tcp", []), ("udp", [])]


def test_passt_leaves_the_ports_of_an_istio_proxy_alone() -> None:
    envoy = ["15000", "15001", "15004", "15006", "15008", "15009", "15020", "15021", "15053", "15090"]
    found = forwards([{"port": 80}], **{"sidecar.istio.io/inject": "True"})
    assert found == [("tcp", ["-" + port for port in envoy] + ["80"])]


def test_passt_without_a_pod_interface() -> None:
    assert error_field(nic(passtBinding={})) == "spec.domain.devices.interfaces[0].passtBinding"
