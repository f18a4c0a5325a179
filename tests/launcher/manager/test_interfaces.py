"""Interfaces of a running guest."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from kvnode.launcher.errors import LauncherError
from kvnode.launcher.manager import interfaces
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.xml import name_of
from kvnode.launcher.network import PodNetwork
from kvnode.net import links as pod_links
from kvnode.net import names
from kvnode.net.links import Link


def instance(spec=None, status=(), networks=None):
    entries = (
        spec if spec is not None else [{"name": "default", "masquerade": {}}, {"name": "blue", "bridge": {}}]
    )
    nets = networks or [
        {"name": "default", "pod": {}},
        {"name": "blue", "multus": {"networkName": "blue"}},
        {"name": "green", "multus": {"networkName": "green"}},
    ]
    made = {
        "spec": {"domain": {"devices": {"interfaces": entries}}, "networks": nets},
        "status": {"interfaces": list(status)},
    }
    return Instance.read(json.dumps(made).encode())


def domain(*entries):
    """``(name, target, link)`` of each interface."""
    root = ET.Element("domain")
    devices = ET.SubElement(root, "devices")
    for name, target, link in entries:
        made = ET.SubElement(devices, "interface", {"type": "ethernet"})
        ET.SubElement(made, "alias", {"name": f"ua-{name}"})
        if target:
            ET.SubElement(made, "target", {"dev": target})
        if link:
            ET.SubElement(made, "link", {"state": link})
    return root


def brought(name, source="domain, multus-status"):
    return {"name": name, "infoSource": source}


class TestPlug:
    def test_what_multus_brought_is_plugged_in(self):
        one = instance(status=[brought("blue")])
        assert interfaces.networks_to_plug(one, domain(("default", "tap0", ""))) == ["blue"]

    @pytest.mark.parametrize(
        ("one", "live"),
        [
            (instance(status=[brought("blue")]), domain(("blue", "tap1", ""))),
            (instance(status=[brought("blue", "domain, guest-agent")]), domain()),
            (instance(status=[brought("green")]), domain()),
            (instance([{"name": "blue", "bridge": {}, "state": "absent"}], [brought("blue")]), domain()),
            (instance([{"name": "blue", "sriov": {}}], [brought("blue")]), domain()),
        ],
    )
    def test_nothing_else_is(self, one, live):
        assert interfaces.networks_to_plug(one, live) == []


class TestUnplug:
    def test_an_absent_one_goes_by_its_tap(self):
        tap = names.tap(names.hashed("blue"), {"multus": {}})
        gone = instance([{"name": "blue", "bridge": {}, "state": "absent"}])
        found = interfaces.absent(gone, domain(("blue", tap, ""), ("default", "tap0", "")))
        assert [name_of(one) for one in found] == ["blue"]
        assert list(interfaces.absent(gone, domain(("blue", "net1", "")))) == []
        assert list(interfaces.absent(instance(), domain(("blue", tap, "")))) == []


class TestLink:
    @pytest.mark.parametrize(
        ("before", "after", "state"), [("", "down", "down"), ("down", "", "up"), ("up", "down", "down")]
    )
    def test_changes(self, before, after, state):
        live = domain(("blue", "tap1", before))
        (made,) = interfaces.relinked(domain(("blue", "", after)), live)
        assert [one.get("state") for one in made.findall("link")] == [state]
        assert made.find("target").get("dev") == "tap1"

    @pytest.mark.parametrize(("before", "after"), [("", ""), ("", "up"), ("down", "down")])
    def test_no_change(self, before, after):
        assert list(interfaces.relinked(domain(("b", "", after)), domain(("b", "t", before)))) == []


class Dhcp:
    def __init__(self):
        self.asked = []

    async def ensure(self, interface, config, custom):
        self.asked.append((interface, config.name, custom))


class TestPod:
    @pytest.fixture
    def links(self, monkeypatch):
        found = {}
        for number, name in enumerate(["eth0", "tap0"]):
            found[name] = Link(number, name, bytes([2, 0, 0, 0, 0, number]), 1450)
        monkeypatch.setattr(pod_links, "find", found.get)
        monkeypatch.setattr(pod_links, "addresses", lambda _link: [])
        return found

    def plug(self, one, made, attachments, networks=("default",)):
        import asyncio  # noqa: PLC0415

        dhcp = Dhcp()
        asyncio.run(PodNetwork(dhcp).plug(one.data, made, attachments, networks))
        return dhcp.asked

    @pytest.mark.usefixtures("links")
    def test_the_tap_goes_into_the_domain(self):
        made = domain(("default", "", ""))
        assert self.plug(instance(), made, {"default": "tap"}) == [("k6t-eth0", "eth0", None)]
        interface = made.find("devices/interface")
        assert interface.find("target").attrib == {"dev": "tap0", "managed": "no"}
        assert interface.find("mtu").get("size") == "1450"
        assert interface.find("mac").get("address") == "02:00:00:00:00:00"

    def test_a_mac_of_the_vmi_and_a_pod_interface_without_a_tap(self, links):
        del links["tap0"]
        made = domain(("default", "", ""))
        self.plug(
            instance([{"name": "default", "masquerade": {}, "macAddress": "02-AA-BB-CC-DD-EE"}]),
            made,
            {"default": "tap"},
        )
        interface = made.find("devices/interface")
        assert interface.find("target").get("dev") == "eth0"
        assert interface.find("mac").get("address") == "02:aa:bb:cc:dd:ee"

    @pytest.mark.parametrize("attachments", [{}, {"default": "managedTap"}, {"default": "passt"}])
    @pytest.mark.usefixtures("links")
    def test_other_attachments_are_left_alone(self, attachments):
        made = domain(("default", "", ""))
        assert self.plug(instance(), made, attachments) == []
        assert made.find("devices/interface/target") is None

    def test_a_missing_link_is_named(self, monkeypatch):
        monkeypatch.setattr(pod_links, "find", lambda _name: None)
        with pytest.raises(LauncherError, match="network default: the pod has no interface eth0"):
            self.plug(instance(), domain(("default", "", "")), {"default": "tap"})
