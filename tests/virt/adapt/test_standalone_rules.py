"""Domains on a machine without a cluster's network."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from kvnode.virt.adapt import LIBVIRT_RULES, STANDALONE_RULES, adapt

NEW = 99_000_000

TAP = """<domain type='{type}'><cpu mode='{mode}'/><devices><interface type='{interface}'><source/><target dev='tap0'/>
<model type='virtio-non-transitional'/><mac address='02:00:00:00:00:01'/><boot order='2'/><rom enabled='no'/>
<driver name='vhost' queues='4'/><mtu size='1400'/><alias name='ua-default'/></interface></devices></domain>"""


def domain(xml: str, **options: bool) -> ET.Element:
    """An adapted domain."""
    return ET.fromstring(adapt(xml, NEW, **options).xml)


@pytest.mark.parametrize("kind", ["ethernet", ""])
def test_taps_become_user_networking(kind: str) -> None:
    xml = TAP.format(type="kvm", mode="host-model", interface=kind)
    interface = domain(xml, standalone=True).find("devices/interface")
    assert interface is not None
    assert interface.get("type") == "user"
    assert [child.tag for child in interface] == ["model", "mac", "boot", "rom", "alias"]
    adapted = adapt(xml, NEW, standalone=True)
    assert "user-networking" in adapted.rules
    assert any("not reached from outside" in note for note in adapted.notes)


def test_in_a_cluster_interfaces_stay() -> None:
    interface = domain(TAP.format(type="kvm", mode="host-model", interface="ethernet")).find(
        "devices/interface"
    )
    assert interface is not None
    assert interface.get("type") == "ethernet"
    assert interface.find("driver") is not None


@pytest.mark.parametrize(
    ("kind", "mode", "expected"),
    [
        ("qemu", "host-passthrough", "maximum"),
        ("kvm", "host-passthrough", "host-passthrough"),
        ("qemu", "host-model", "host-model"),
    ],
)
def test_the_hosts_cpu_is_not_passed_through_to_emulation(kind: str, mode: str, expected: str) -> None:
    cpu = domain(TAP.format(type=kind, mode=mode, interface="ethernet"), standalone=True).find("cpu")
    assert cpu is not None
    assert cpu.get("mode") == expected


def test_adapting_what_is_adapted_changes_nothing() -> None:
    once = adapt(
        TAP.format(type="qemu", mode="host-passthrough", interface="ethernet"), 9_000_000, standalone=True
    )
    again = adapt(once.xml, 9_000_000, standalone=True)
    assert (again.xml, again.rules) == (once.xml, ())


@pytest.mark.parametrize("xml", ["", "<domain>", "<network/>", "plain"])
def test_what_is_no_domain_is_refused(xml: str) -> None:
    with pytest.raises(ValueError, match=r"well-formed|not <domain>"):
        adapt(xml, NEW)


def test_rules_have_names_and_reasons() -> None:
    rules = (*LIBVIRT_RULES, *STANDALONE_RULES)
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(len(rule.why) > 20 for rule in rules)
    assert all("\n" not in rule.note for rule in rules)


def test_memory_limits_for_libvirt_9() -> None:
    xml = "<domain><maxMemory slots='0' unit='b'>8</maxMemory>{}</domain>"
    cell = "<cpu><numa><cell id='0'/></numa></cpu>"
    assert ET.fromstring(adapt(xml.format(""), 9_000_000).xml).find("maxMemory") is None
    limit = ET.fromstring(adapt(xml.format(cell), 9_000_000).xml).find("maxMemory")
    assert limit is not None
    assert limit.get("slots") == "1"
    limit = ET.fromstring(adapt(xml.format(""), 11_003_000).xml).find("maxMemory")
    assert limit is not None
    assert limit.get("slots") == "0"
