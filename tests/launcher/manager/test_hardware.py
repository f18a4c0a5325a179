"""CPUs, memory and host devices of a running guest."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import libvirt
import pytest

from kvnode.launcher.manager import hardware
from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from tests.virt.errors import libvirt_error

MIB = 1 << 20


def instance(guest="256Mi", most="1Gi", booted="128Mi", **memory):
    made = {"spec": {"domain": {"memory": memory}}, "status": {}}
    memory |= {name: value for name, value in (("guest", guest), ("maxGuest", most)) if value is not None}
    if booted is not None:
        made["status"]["memory"] = {"guestAtBoot": booted}
    return Instance.read(json.dumps(made).encode())


class Guest:
    def __init__(self, xml="<domain><devices/></domain>", fails=()):
        self.calls = []
        self._xml = xml
        self._fails = fails

    def XMLDesc(self, _flags):  # noqa: N802
        return self._xml

    def vcpusFlags(self, _flags):  # noqa: N802
        return 2

    def __getattr__(self, name):
        def call(*arguments):
            if any(word in str(arguments[0]) for word in self._fails):
                raise libvirt_error("no room")
            self.calls.append((name, *arguments))

        return call


class TestMemory:
    def test_the_first_time_a_device_is_plugged_in(self):
        guest = Guest()
        hardware.set_memory(guest, instance())
        ((call, text, flags),) = guest.calls
        device = ET.fromstring(text)
        assert (call, device.get("model")) == ("attachDeviceFlags", "virtio-mem")
        sizes = {child.tag: (child.get("unit"), child.text) for child in device.find("target")}
        assert sizes == {
            "size": ("b", str(896 * MIB)),
            "node": (None, "0"),
            "block": ("b", str(2 * MIB)),
            "requested": ("b", str(128 * MIB)),
        }
        assert flags == libvirt.VIR_DOMAIN_AFFECT_LIVE | libvirt.VIR_DOMAIN_AFFECT_CONFIG

    def test_then_it_gives_more_or_less(self):
        guest = Guest(
            "<domain><devices><memory model='virtio-mem'><target><size unit='KiB'>917504</size>"
            "<requested unit='KiB'>131072</requested><current unit='KiB'>131072</current></target></memory>"
            "</devices></domain>"
        )
        hardware.set_memory(guest, instance("192Mi"))
        ((call, text, flags),) = guest.calls
        requested = ET.fromstring(text).find("target/requested")
        assert (call, requested.get("unit"), requested.text) == ("updateDeviceFlags", "b", str(64 * MIB))
        assert flags == libvirt.VIR_DOMAIN_DEVICE_MODIFY_LIVE

    def test_huge_pages_set_the_grain(self):
        guest = Guest()
        hardware.set_memory(guest, instance("2Gi", "4Gi", "1Gi", hugepages={"pageSize": "1Gi"}))
        assert ET.fromstring(guest.calls[0][1]).findtext("target/block") == str(1 << 30)

    @pytest.mark.parametrize(
        ("one", "words"),
        [
            (instance(most=None), r"spec\.domain\.memory\.maxGuest: is missing"),
            (instance(guest=None), r"spec\.domain\.memory\.guest: is missing"),
            (instance(booted=None), r"status\.memory\.guestAtBoot: is missing"),
            (instance("64Mi"), "must be from 134217728"),
            (instance("2Gi"), "must be from 134217728"),
        ],
    )
    def test_what_cannot_be(self, one, words):
        with pytest.raises(ManagerError, match=words):
            hardware.set_memory(Guest(), one)


class TestCell:
    """libvirt before 11.3 plugs memory only into guests with a NUMA cell."""

    def test_a_guest_whose_memory_may_grow_gets_one(self):
        domain = ET.fromstring(
            "<domain><memory unit='b'>5</memory><maxMemory unit='b' slots='0'>9</maxMemory><vcpu current='1'>4</vcpu>"
            "<cpu mode='host-model'/></domain>"
        )
        assert hardware.add_cell(domain)
        assert domain.find("cpu/numa/cell").attrib == {"id": "0", "cpus": "0-3", "memory": "5", "unit": "b"}
        assert not hardware.add_cell(domain)

    @pytest.mark.parametrize(
        "rest",
        [
            "",
            "<maxMemory>9</maxMemory><vcpu>x</vcpu>",
            "<maxMemory>9</maxMemory><cpu><numa><cell/></numa></cpu>",
        ],
    )
    def test_no_other_does(self, rest):
        assert not hardware.add_cell(ET.fromstring(f"<domain><memory>5</memory>{rest}</domain>"))


class TestCpus:
    def test_maps(self):
        assert hardware.cpu_map("1,3") == (False, True, False, True)
        assert hardware.cpu_map("") == ()

    def test_those_that_are_there_are_pinned(self):
        wanted = ET.fromstring(
            "<domain><cputune><vcpupin vcpu='0' cpuset='2'/><vcpupin vcpu='1' cpuset='0'/>"
            "<vcpupin vcpu='2' cpuset='1'/><emulatorpin cpuset='0-1'/></cputune></domain>"
        )
        guest = Guest()
        hardware.pin_vcpus(guest, wanted)
        both = libvirt.VIR_DOMAIN_AFFECT_LIVE | libvirt.VIR_DOMAIN_AFFECT_CONFIG
        assert guest.calls == [
            ("pinVcpuFlags", 0, (False, False, True), both),
            ("pinVcpuFlags", 1, (True,), both),
            ("pinEmulator", (True, True), both),
        ]

    @pytest.mark.parametrize(
        ("domain", "count"),
        [
            ({}, 1),
            ({"cpu": {"cores": 2, "sockets": 3}}, 6),
            ({"cpu": {"threads": 2}, "resources": {"limits": {"cpu": "8"}}}, 2),
            ({"resources": {"requests": {"cpu": "1500m"}}}, 2),
            ({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}}, 4),
            ({"cpu": {"model": "host-model"}, "resources": {"requests": {"cpu": "3"}}}, 3),
        ],
    )
    def test_how_many(self, domain, count):
        assert Instance.read(json.dumps({"spec": {"domain": domain}}).encode()).vcpus() == count


class TestHostDevices:
    WANTED = ET.fromstring(
        "<domain><devices><hostdev><alias name='ua-sriov-a'/></hostdev><hostdev><alias name='ua-sriov-b'/></hostdev>"
        "<hostdev><alias name='ua-gpu-x'/></hostdev></devices></domain>"
    )

    def test_missing_functions_are_plugged_in(self):
        guest = Guest("<domain><devices><hostdev><alias name='ua-sriov-a'/></hostdev></devices></domain>")
        hardware.attach_host_devices(guest, self.WANTED)
        assert ["sriov-b" in call[1] for call in guest.calls] == [True]

    def test_one_that_fails_does_not_keep_the_others_out(self):
        guest = Guest(fails=("sriov-a",))
        with pytest.raises(ManagerError, match="a: "):
            hardware.attach_host_devices(guest, self.WANTED)
        assert len(guest.calls) == 1
