"""Situations that users of such systems ran into, with the right domain for each. Test ids name the report."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from lxml import etree

import kvnode
from tests.fast.helpers import (
    MINIMAL_CONTEXT,
    MINIMAL_VMI,
    canonical,
    devices,
    domain,
    error_field,
    merged,
    xml,
)
from tests.reports import report


def claims(*disks: dict[str, Any], **domain_fields: Any) -> dict[str, Any]:
    """A VMI with these disks, each on a claim."""
    volumes = [{"name": disk["name"], "persistentVolumeClaim": {"claimName": disk["name"]}} for disk in disks]
    return {
        "spec": merged(
            {"domain": {"devices": {"disks": list(disks)}}, "volumes": volumes}, {"domain": domain_fields}
        )
    }


# --- disks


@report("B24")
@pytest.mark.parametrize(
    ("switches", "queues"),
    [
        ({"networkInterfaceMultiqueue": True}, {"vda": None, "sda": None}),
        ({"blockMultiQueue": True}, {"vda": "4", "sda": None}),
    ],
)
def test_disks_have_queues_for_the_disk_switch_alone(
    reported: str, switches: dict[str, bool], queues: dict[str, str | None]
) -> None:
    vmi = claims(
        {"name": "a", "disk": {"bus": "virtio"}},
        {"name": "b", "disk": {"bus": "sata"}},
        cpu={"cores": 4, "maxSockets": 4},
        devices=switches,
    )
    found = {}
    for disk in domain(vmi).findall("devices/disk"):
        target, driver = disk.find("target"), disk.find("driver")
        assert target is not None
        assert driver is not None
        found[target.get("dev")] = driver.get("queues")
    assert found == queues


@report("B25")
@pytest.mark.parametrize(
    ("dedicated", "driver"), [(False, None), (True, '<driver iothread="1" queues="2"/>')]
)
def test_native_io_of_a_scsi_disk_stays_native_beside_io_threads(
    reported: str, dedicated: bool, driver: str | None
) -> None:
    disk = {
        "name": "a",
        "io": "native",
        "cache": "none",
        "disk": {"bus": "scsi"},
        "dedicatedIOThread": dedicated,
    }
    root = domain(claims(disk, {"name": "b", "disk": {"bus": "virtio"}}, ioThreadsPolicy="shared"))
    own = root.find("devices/disk/driver")
    assert own is not None
    assert (own.get("io"), own.get("iothread")) == ("native", None)
    controllers = root.find("devices/controller[@type='scsi']/driver")
    assert (None if controllers is None else canonical(controllers)) == (driver and xml(driver))


@report("B27")
def test_a_cd_drive_without_a_cd(reported: str) -> None:
    root = domain(devices(disks=[{"name": "cd", "cdrom": {"bus": "sata"}}]))
    assert canonical(root.find("devices/disk")) == xml(
        """
        <disk type="block" device="cdrom">
          <target bus="sata" dev="sda"/>
          <driver name="qemu" type="raw" error_policy="stop" discard="unmap"/>
          <readonly/>
          <alias name="ua-cd"/>
        </disk>
        """
    )
    for target in ("disk", "lun"):
        missing = devices(disks=[{"name": "gone", target: {"bus": "scsi"}}])
        assert error_field(missing) == "spec.domain.devices.disks[0].name"


@report("B29")
def test_a_disk_keeps_the_name_it_was_attached_by(reported: str) -> None:
    vmi = claims({"name": "b", "disk": {"bus": "scsi"}}, {"name": "c", "disk": {"bus": "scsi"}})
    vmi["status"] = {"volumeStatus": [{"name": "b", "target": "sdb"}]}
    assert names_and_units(domain(vmi)) == {"ua-b": ("sdb", "1"), "ua-c": ("sda", "0")}


@report("B29")
def test_eight_hundred_disks_have_names_of_their_own_around_gaps(reported: str) -> None:
    disks = [{"name": f"d{i}", "disk": {"bus": ("sata", "scsi", "usb")[i % 3]}} for i in range(800)]
    vmi = claims(*disks)
    kept = {f"d{i}": name for i, name in ((799, "sda"), (400, "sdz"), (3, "sdaa"), (5, "sdzz"))}
    vmi["status"] = {"volumeStatus": [{"name": name, "target": target} for name, target in kept.items()]}
    found = {alias.removeprefix("ua-"): name for alias, (name, _) in names_and_units(domain(vmi)).items()}
    assert len(set(found.values())) == 800
    assert {name: found[name] for name in kept} == kept
    assert [found[f"d{i}"] for i in (0, 1, 2, 4)] == ["sdb", "sdc", "sdd", "sde"]
    assert all(name.startswith("sd") for name in found.values())
    assert {"sdz", "sdaa", "sdab", "sdba"} <= set(found.values())


def names_and_units(root: ET.Element) -> dict[str, tuple[str, str | None]]:
    """Alias of each disk, with its device name and its unit on the controller."""
    found = {}
    for disk in root.findall("devices/disk"):
        alias, target, address = (disk.find(tag) for tag in ("alias", "target", "address"))
        assert alias is not None
        assert target is not None
        found[alias.attrib["name"]] = (target.attrib["dev"], None if address is None else address.get("unit"))
    return found


# --- features, firmware, strings


@report("B36")
@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({"hyperv": {"relaxed": {}}}, '<hyperv><relaxed state="on"/></hyperv>'),
        ({"hyperv": {"synic": {}}}, '<hyperv><vpindex state="on"/><synic state="on"/></hyperv>'),
        ({"hyperv": {"evmcs": {}}}, '<hyperv><vapic state="on"/><evmcs state="on"/></hyperv>'),
        ({"hypervPassthrough": {"enabled": True}}, '<hyperv mode="passthrough"/>'),
    ],
    ids=["relaxed", "synic", "evmcs", "passthrough"],
)
def test_a_hyperv_block_without_every_member(reported: str, features: dict[str, Any], expected: str) -> None:
    root = defaulted({"spec": {"domain": {"features": features}}})
    assert canonical(root.find("features/hyperv")) == xml(expected)
    vmx = root.find("cpu/feature[@name='vmx']")
    assert (vmx is not None and vmx.get("policy") == "require") == ("evmcs" in features.get("hyperv", {}))


@report("B36")
def test_hyperv_passthrough_that_says_nothing_is_no_crash(reported: str) -> None:
    root = domain({"spec": {"domain": {"features": {"hypervPassthrough": {}}}}})
    hyperv = root.find("features/hyperv")
    assert hyperv is None or hyperv.get("mode") == "passthrough"


def defaulted(fragment: dict[str, Any]) -> ET.Element:
    """The domain of the minimal VMI with a fragment over it, as the cluster would default it first."""
    vmi = kvnode.apply_defaults(merged(MINIMAL_VMI, fragment), "amd64")
    return ET.fromstring(kvnode.convert(vmi, MINIMAL_CONTEXT))


@report("B34")
def test_a_kernel_without_an_initrd(reported: str) -> None:
    boot = {"kernelArgs": 'console=ttyS0 a="b&c"', "container": {"image": "i", "kernelPath": "/k"}}
    root = domain({"spec": {"domain": {"firmware": {"kernelBoot": boot}}}})
    assert root.findtext("os/kernel") == "/var/run/kubevirt/container-disks/kernel-boot/k"
    assert root.findtext("os/cmdline") == 'console=ttyS0 a="b&c"'
    assert root.find("os/initrd") is None


CHASSIS = {"manufacturer": "A&B <c>", "asset": "q\"uote'", "version": "", "serial": "", "sku": ""}
FIRMWARE = {"uuid": "11111111-2222-3333-4444-555555555555", "serial": "two words"}


@report("B23")
def test_strings_of_the_firmware_come_back_as_they_were_given(reported: str) -> None:
    smbios = {"manufacturer": "M", "family": "F", "product": "P", "sku": "K", "version": "V"}
    vmi = merged(MINIMAL_VMI, {"spec": {"domain": {"firmware": FIRMWARE, "chassis": CHASSIS}}})
    root = etree.fromstring(kvnode.convert(vmi, merged(MINIMAL_CONTEXT, {"smbios": smbios})))
    system = [(entry.get("name"), entry.text) for entry in root.findall("sysinfo/system/entry")]
    assert system == [*FIRMWARE.items(), *((name, value) for name, value in smbios.items())]
    chassis = {entry.get("name"): entry.text or "" for entry in root.findall("sysinfo/chassis/entry")}
    assert chassis == CHASSIS


@report("B23")
@pytest.mark.parametrize("code", [*range(9), 0x0B, 0x1F, 0xFFFE])
def test_characters_that_xml_cannot_carry_are_refused(reported: str, code: int) -> None:
    fragment = {"spec": {"domain": {"firmware": {**FIRMWARE, "serial": f"a{chr(code)}b"}}}}
    assert error_field(fragment) == "spec.domain.firmware.serial"


# --- interfaces and host devices


@report("B37")
def test_only_an_interface_with_a_boot_order_boots(reported: str) -> None:
    vmi = claims({"name": "d", "bootOrder": 2, "disk": {"bus": "virtio"}})
    vmi["spec"]["networks"] = [{"name": "a", "pod": {}}, {"name": "b", "multus": {"networkName": "x"}}]
    vmi["spec"]["domain"]["devices"]["interfaces"] = [
        {"name": "a", "masquerade": {}},
        {"name": "b", "bridge": {}, "bootOrder": 1},
    ]
    taps = {"a": "tap", "b": "tap"}
    assert boots(domain(vmi, domainAttachmentByInterface=taps)) == {"ua-a": (None, "no"), "ua-b": ("1", None)}
    vmi["spec"]["domain"]["launchSecurity"] = {"sev": {}}
    assert boots(domain(vmi, domainAttachmentByInterface=taps)) == {"ua-a": (None, "no"), "ua-b": ("1", "no")}


def boots(root: ET.Element) -> dict[str, tuple[str | None, str | None]]:
    """Alias of each interface, with its boot order and whether its ROM is on."""
    found = {}
    for interface in root.findall("devices/interface"):
        alias, boot, rom = (interface.find(tag) for tag in ("alias", "boot", "rom"))
        assert alias is not None
        order = None if boot is None else boot.get("order")
        found[alias.attrib["name"]] = (order, None if rom is None else rom.get("enabled"))
    return found


@report("B39")
def test_each_sriov_card_has_its_own_network_s_address(reported: str) -> None:
    interfaces = [
        {"name": "s1", "sriov": {}, "pciAddress": "0000:81:00.0", "bootOrder": 1},
        {"name": "s2", "sriov": {}, "pciAddress": "0000:82:00.0"},
    ]
    networks = [{"name": name, "multus": {"networkName": name}} for name in ("s1", "s2")]
    addresses = {"s2": "0000:65:00.2", "s1": "0000:65:00.3"}
    root = domain(
        {"spec": {"domain": {"devices": {"interfaces": interfaces}}, "networks": networks}},
        networkInfo={
            "interfaces": [
                {"network": name, "deviceInfo": {"type": "pci", "pci": {"pci-address": address}}}
                for name, address in addresses.items()
            ]
        },
    )
    assert [canonical(device) for device in root.findall("devices/hostdev")] == [
        card(
            "s1", '<address type="pci" domain="0x0000" bus="0x65" slot="0x00" function="0x3"/>', "81", boot=1
        ),
        card("s2", '<address type="pci" domain="0x0000" bus="0x65" slot="0x00" function="0x2"/>', "82"),
    ]


def card(name: str, source: str, bus: str, boot: int | None = None) -> str:
    order = f'<boot order="{boot}"/>' if boot else ""
    return xml(
        f'<hostdev type="pci" managed="no"><source>{source}</source>{order}'
        f'<address type="pci" domain="0x0000" bus="0x{bus}" slot="0x00" function="0x0"/>'
        f'<alias name="ua-sriov-{name}"/></hostdev>'
    )


GPUS = [{"name": name, "deviceName": "vendor.example/GRID_X-1Q"} for name in ("g1", "g2")]


def mdevs(gpus: list[dict[str, Any]], addresses: str) -> list[tuple[str | None, ...]]:
    root = domain(devices(gpus=gpus), env={"MDEV_PCI_RESOURCE_VENDOR_EXAMPLE_GRID_X-1Q": addresses})
    found = []
    for device in root.findall("devices/hostdev"):
        address = device.find("source/address")
        assert address is not None
        found.append((address.get("uuid"), device.get("display"), device.get("ramfb")))
    return found


@report("B69")
def test_each_vgpu_takes_the_next_address_of_its_resource(reported: str) -> None:
    assert mdevs(GPUS, "uuid-a,uuid-b,") == [("uuid-a", "on", "on"), ("uuid-b", None, None)]


@report("B69")
def test_no_display_is_added_when_one_device_says_what_it_wants(reported: str) -> None:
    silent = {"virtualGPUOptions": {"display": {"enabled": False}}}
    assert mdevs([GPUS[0], GPUS[1] | silent], "uuid-a,uuid-b") == [
        ("uuid-a", None, None),
        ("uuid-b", None, None),
    ]


@report("B69")
@pytest.mark.parametrize(("addresses", "unserved"), [("uuid-a", 1), ("uuid-a,", 1), ("", 0)])
def test_too_few_addresses_are_an_error_that_names_the_device(
    reported: str, addresses: str, unserved: int
) -> None:
    env = {"MDEV_PCI_RESOURCE_VENDOR_EXAMPLE_GRID_X-1Q": addresses}
    with pytest.raises(kvnode.ConversionError, match=r"vendor\.example/GRID_X-1Q") as caught:
        domain(devices(gpus=GPUS), env=env)
    assert caught.value.field == f"spec.domain.devices.gpus[{unserved}].deviceName"


# --- quantities


@report("B10")
@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096M", 4_096_000_000),
        ("16G", 16_000_000_000),
        ("64M", 64_000_000),
        ("1G", 10**9),
        ("1Gi", 2**30),
        ("1e9", 10**9),
        ("1E9", 10**9),
    ],
)
def test_memory_is_the_amount_that_was_asked_for(reported: str, text: str, size: int) -> None:
    vmi = merged(MINIMAL_VMI, {"spec": {"domain": {"resources": {"requests": {"memory": text}}}}})
    del vmi["spec"]["domain"]["memory"]
    root = ET.fromstring(kvnode.convert(vmi, MINIMAL_CONTEXT))
    memory = root.find("memory")
    assert memory is not None
    assert (memory.get("unit"), memory.text) == ("b", str(size))


@report("B10")
@pytest.mark.parametrize(("text", "size"), [("1E", 10**18), ("100m", 1), ("0.5Gi", 2**29)])
def test_odd_quantities(reported: str, text: str, size: int) -> None:
    assert kvnode.Quantity(text).value == size
