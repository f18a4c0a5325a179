"""The domain of a typical VMI, built the plain way: json, Python and lxml.

For comparison only. It knows what the VMIs of `bench.sample.typical_vmi` use and no more; tests/bench holds it to
the same XML as the converter's, so that both do the same work.
"""

from __future__ import annotations

import json
from typing import Any

from lxml import etree
from lxml.etree import SubElement

JsonObject = dict[str, Any]
PRIVATE = "/var/run/kubevirt-private"
VIRTIO = "virtio-non-transitional"


def plain_domain(source: bytes, context: JsonObject) -> bytes:
    """The domain XML of a VMI given as JSON."""
    vmi = json.loads(source)
    spec = vmi["spec"]["domain"]
    root = etree.Element(
        "domain",
        type="kvm" if context["kvmAvailable"] else "qemu",
        nsmap={"qemu": "http://libvirt.org/schemas/domain/qemu/1.0"},
    )
    name = SubElement(root, "name")
    name.text = f"{vmi['metadata']['namespace']}_{vmi['metadata']['name']}"
    memory = SubElement(root, "memory", unit="b")
    memory.text = str(bytes_of(spec["memory"]["guest"]))
    system = SubElement(root, "os")
    SubElement(system, "type", arch="x86_64", machine=spec["machine"]["type"]).text = "hvm"
    SubElement(system, "smbios", mode="sysinfo")
    add_sysinfo(root, spec, context)
    add_cpu(root, spec["cpu"])
    features = SubElement(root, "features")
    if spec["features"]["acpi"].get("enabled", True):
        SubElement(features, "acpi")
    SubElement(features, "vmport", state="off")
    own = etree.fromstring('<kubevirt xmlns="http://kubevirt.io"/>')
    SubElement(root, "metadata").append(own)
    add_devices(SubElement(root, "devices"), vmi, context)
    return etree.tostring(root)


def bytes_of(quantity: str) -> int:
    units = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    return int(quantity[:-2]) * units[quantity[-2:]]


def add_sysinfo(root: etree._Element, spec: JsonObject, context: JsonObject) -> None:
    system = SubElement(SubElement(root, "sysinfo", type="smbios"), "system")
    SubElement(system, "entry", name="uuid").text = spec["firmware"]["uuid"]
    for key in ("manufacturer", "family", "product", "sku", "version"):
        SubElement(system, "entry", name=key).text = context["smbios"].get(key)


def add_cpu(root: etree._Element, cpu: JsonObject) -> None:
    each = cpu["cores"] * cpu["threads"]
    most = each * cpu["maxSockets"]
    vcpus = SubElement(root, "vcpus")
    for i in range(most):
        enabled = "yes" if i < each * cpu["sockets"] else "no"
        SubElement(vcpus, "vcpu", id=str(i), enabled=enabled, hotpluggable="yes" if i >= each else "no")
    SubElement(root, "vcpu", placement="static").text = str(most)
    SubElement(
        SubElement(root, "cpu", mode=cpu["model"]),
        "topology",
        sockets=str(cpu["maxSockets"]),
        cores=str(cpu["cores"]),
        threads=str(cpu["threads"]),
    )


def add_devices(devices: etree._Element, vmi: JsonObject, context: JsonObject) -> None:
    wanted = vmi["spec"]["domain"]["devices"]
    uid = vmi["metadata"]["uid"]
    for interface in wanted["interfaces"]:
        add_interface(devices, interface, context)
    SubElement(devices, "controller", type="usb", index="0", model="none")
    SubElement(devices, "controller", type="scsi", index="0", model=VIRTIO)
    SubElement(devices, "controller", type="virtio-serial", index="0", model=VIRTIO)
    listen = SubElement(SubElement(devices, "graphics", type="vnc"), "listen", type="socket")
    listen.set("socket", f"{PRIVATE}/{uid}/virt-vnc")
    SubElement(SubElement(devices, "video"), "model", type="vga", heads="1", vram="16384")
    volumes = {volume["name"]: (i, volume) for i, volume in enumerate(vmi["spec"]["volumes"])}
    for i, disk in enumerate(wanted["disks"]):
        index, volume = volumes[disk["name"]]
        kind, file = image_of(volume, vmi["metadata"])
        element = add_disk(devices, disk, disk_letters(i), kind, file)
        if "containerDisk" in volume:
            backing = SubElement(element, "backingStore", type="file")
            SubElement(backing, "format", type=context["disksInfo"][disk["name"]]["format"])
            SubElement(backing, "source", file=f"/var/run/kubevirt/container-disks/disk_{index}.img")
        SubElement(element, "alias", name="ua-" + disk["name"])
    serial = SubElement(devices, "serial", type="unix")
    SubElement(serial, "target", port="0")
    SubElement(serial, "source", mode="bind", path=f"{PRIVATE}/{uid}/virt-serial0")
    SubElement(SubElement(devices, "console", type="pty"), "target", type="serial", port="0")
    SubElement(
        SubElement(devices, "channel", type="unix"), "target", name="org.qemu.guest_agent.0", type="virtio"
    )
    if "rng" in wanted:
        SubElement(SubElement(devices, "rng", model=VIRTIO), "backend", model="random").text = "/dev/urandom"
    balloon = SubElement(devices, "memballoon", model=VIRTIO, freePageReporting="off")
    SubElement(balloon, "stats", period=str(context["memBalloonStatsPeriod"]))


def add_interface(devices: etree._Element, interface: JsonObject, context: JsonObject) -> None:
    tap = context["domainAttachmentByInterface"][interface["name"]] == "tap"
    element = SubElement(devices, "interface", type="ethernet" if tap else "")
    SubElement(element, "model", type=VIRTIO)
    SubElement(element, "mac", address=interface["macAddress"])
    SubElement(element, "alias", name="ua-" + interface["name"])
    SubElement(element, "rom", enabled="no")


def disk_letters(number: int) -> str:
    letters = ""
    number += 1
    while number > 0:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def image_of(volume: JsonObject, metadata: JsonObject) -> tuple[str, str]:
    """The format of the volume's image, and its path."""
    name = volume["name"]
    if "containerDisk" in volume:
        return "qcow2", f"/var/run/kubevirt-ephemeral-disks/disk-data/{name}/disk.qcow2"
    if "emptyDisk" in volume:
        return "qcow2", f"/var/run/libvirt/empty-disks/{name}.qcow2"
    if "persistentVolumeClaim" in volume:
        return "raw", f"{PRIVATE}/vmi-disks/{name}/disk.img"
    return "raw", f"/var/run/libvirt/cloud-init-dir/{metadata['namespace']}/{metadata['name']}/noCloud.iso"


def add_disk(devices: etree._Element, disk: JsonObject, letters: str, kind: str, file: str) -> etree._Element:
    element = SubElement(devices, "disk", device="disk", type="file", model=VIRTIO)
    SubElement(element, "source", file=file)
    SubElement(element, "target", bus=disk["disk"]["bus"], dev="vd" + letters)
    SubElement(element, "driver", name="qemu", type=kind, error_policy="stop", discard="unmap")
    return element
