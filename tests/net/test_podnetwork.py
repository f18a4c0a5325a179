"""Pods' networks in real namespaces, with traffic through them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kvnode.net import nft, tap
from kvnode.net.cache import Progress
from kvnode.net.dhcp import config
from kvnode.net.errors import CriticalNetError, NetError
from tests.net.conftest import GUEST_MAC, POD_MAC, Lab
from tests.net.traffic import reached, serving

pytestmark = pytest.mark.integration

MASQUERADE = {"name": "default", "masquerade": {}}
BRIDGE = {"name": "default", "bridge": {}}


def masqueraded(lab: Lab, **more: Any) -> None:
    lab.set_up({**MASQUERADE, **more})
    lab.plug()
    lab.address("10.0.2.2/24", "fd10:0:2::2/120", via=("10.0.2.1", "fd10:0:2::1"))


def test_a_masqueraded_guest_reaches_out_and_is_reached(lab: Lab) -> None:
    masqueraded(lab)
    for address in ("10.244.0.1", "fd10:244::1"):
        lab.pings(lab.guest, address)
    with serving(lab.node, 8000, "node"), serving(lab.guest, 8080, "guest"):
        # Outside, the guest is the pod.
        assert reached(lab.guest, "10.244.0.1", 8000) == ("node", "10.244.0.5")
        assert reached(lab.guest, "fd10:244::1", 8000) == ("node", "fd10:244::5")
        # Inside, callers keep their addresses, but the pod itself is the gateway.
        assert reached(lab.node, "10.244.0.5", 8080) == ("guest", "10.244.0.1")
        assert reached(lab.node, "fd10:244::5", 8080) == ("guest", "fd10:244::1")
        assert reached(lab.pod, "127.0.0.1", 8080) == ("guest", "10.0.2.1")


def test_ports_that_the_vmi_does_not_list_stay_the_pods(lab: Lab) -> None:
    masqueraded(lab, ports=[{"port": 80}, {"port": 5353, "protocol": "UDP"}])
    with serving(lab.guest, 80, "guest"), serving(lab.guest, 81, "guest"), serving(lab.pod, 81, "pod"):
        assert reached(lab.node, "10.244.0.5", 80) == ("guest", "10.244.0.1")
        assert reached(lab.node, "fd10:244::5", 80) == ("guest", "fd10:244::1")
        assert reached(lab.node, "10.244.0.5", 81) == ("pod", "10.244.0.1")
        assert reached(lab.node, "fd10:244::5", 81) == ("pod", "fd10:244::1")


def test_ranges_of_ports(lab: Lab) -> None:
    ranges = [{"protocol": "TCP", "start": 20, "end": 22}]
    lab.set_up({**MASQUERADE, "portRanges": ranges}, port_ranges=True)
    rules = lab.pod.run("nft", "-s", "list", "table", "ip", "nat")
    assert "tcp dport 20-22 counter dnat to 10.0.2.2" in rules


def test_a_mesh_beside_the_guest(lab: Lab) -> None:
    lab.pod.run("nft", "add table ip nat; add chain ip nat ISTIO; add rule ip nat ISTIO counter return")
    lab.set_up(MASQUERADE, istio=True, legacy_migration_ports=True)
    rules = lab.pod.run("nft", "-s", "list", "table", "ip", "nat")
    assert "ip daddr { 10.244.0.5, 127.0.0.1 } counter dnat to 10.0.2.2" in rules
    assert "ip saddr { 127.0.0.1, 127.0.0.6 } counter snat to 10.0.2.1" in rules
    assert "tcp dport { 49152, 49153 } ip saddr 127.0.0.1 counter return" in rules
    assert "chain ISTIO {\n\t\tcounter return" in rules, "the mesh's own rules stay"


def test_a_guest_on_a_bridge_is_the_pod(lab: Lab) -> None:
    lab.set_up(BRIDGE)
    written = lab.root / "var/run/kubevirt-private/vif-cache-eth0.json"
    lease = config.bridge(written.read_bytes(), name="eth0", position=0, mtu=lab.mtu, subdomain="")
    assert (str(lease.ip), lease.mac.hex(":"), str(lease.gateway)) == ("10.244.0.5/24", POD_MAC, "10.244.0.1")
    assert written.stat().st_uid == 107
    lab.plug(mac=POD_MAC)
    lab.address(str(lease.ip), via=(str(lease.gateway),))
    lab.pings(lab.guest, "10.244.0.1")
    with serving(lab.guest, 80, "guest"):
        assert reached(lab.node, "10.244.0.5", 80) == ("guest", "10.244.0.1")
    picture = lab.picture()
    # What asks the pod for its address still finds it.
    assert picture["links"]["eth0"]["addr_info"] == ["10.244.0.5/24", "fd10:244::5/64"]
    assert not picture["links"]["eth0"]["up"]
    assert picture["links"]["eth0"]["kind"] in {"dummy", "veth"}
    assert picture["links"]["eth0-nic"]["addr_info"] == []
    assert lab.link("eth0-nic")["linkinfo"]["info_slave_data"]["learning"] is False
    assert lab.sysctl("ipv4/conf/all/arp_ignore") == "1"


@pytest.mark.parametrize("interface", [MASQUERADE, BRIDGE], ids=["masquerade", "bridge"])
def test_the_guests_card_takes_packets_as_large_as_the_pods(
    labs: Callable[..., Lab], interface: dict[str, Any]
) -> None:
    lab = labs(mtu=8901)
    lab.set_up(interface)
    assert {lab.link(name)["mtu"] for name in ("tap0", "k6t-eth0", "eth0")} == {8901}
    lab.plug(mac=GUEST_MAC)
    address, gateway = (
        ("10.0.2.2/24", "10.0.2.1") if interface is MASQUERADE else ("10.244.0.6/24", "10.244.0.1")
    )
    lab.address(address, via=(gateway,))
    # Less 20 bytes of IP and 8 of ICMP.
    lab.pings(lab.guest, "10.244.0.1", 8901 - 28)


def test_a_tap_of_several_queues_is_the_launchers_own(lab: Lab) -> None:
    lab.set_up(MASQUERADE, queues=4)
    made = lab.link("tap0")["linkinfo"]["info_data"]
    assert (int(made["user"]), int(made["group"]), made["multi_queue"], made["persist"]) == (
        107,
        107,
        True,
        True,
    )
    lab.plug(multiqueue=True)
    lab.address("10.0.2.2/24", via=("10.0.2.1",))
    lab.pings(lab.guest, "10.244.0.1")


def test_a_finished_network_is_left_alone(lab: Lab) -> None:
    lab.set_up(MASQUERADE)
    before = lab.picture()
    lab.pod.run("ip", "link", "set", "tap0", "mtu", "1400")
    lab.set_up(MASQUERADE)
    assert lab.link("tap0")["mtu"] == 1400
    assert lab.cache.read("default").progress is Progress.FINISHED  # type: ignore[union-attr]
    assert before["rules"] == lab.picture()["rules"]


@pytest.mark.parametrize("interface", [MASQUERADE, BRIDGE], ids=["masquerade", "bridge"])
def test_a_second_set_up_of_the_same_changes_nothing(lab: Lab, interface: dict[str, Any]) -> None:
    lab.set_up(interface)
    before = lab.picture()
    lab.progresses.drop("default")
    lab.set_up(interface)
    after = lab.picture()
    for picture in (before, after):
        for name in ("k6t-eth0", "eth0-nic"):
            # A bridge without an address of its own takes one of its ports', and the port that of the bridge.
            picture["links"].get(name, {}).pop("address", None)
    assert after == before


def _refused(rulesets: object) -> None:
    raise NetError("nft: the rules are refused")


def test_what_fails_last_is_undone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lab.picture()
    monkeypatch.setattr(nft, "load", _refused)
    with pytest.raises(CriticalNetError, match="refused"):
        lab.set_up(MASQUERADE)
    assert lab.picture() == before
    lab.pings(lab.pod, "10.244.0.1")


def test_a_bridge_that_fails_gives_the_pod_its_interface_back(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = lab.picture()

    def refused(*_arguments: object, **_more: object) -> None:
        raise NetError("the tap cannot be made")

    monkeypatch.setattr(tap, "create", refused)
    with pytest.raises(CriticalNetError, match="interface tap0: the tap cannot be made"):
        lab.set_up(BRIDGE)
    assert lab.picture() == before
    for address in ("10.244.0.1", "fd10:244::1"):
        lab.pings(lab.pod, address)


def test_a_name_that_something_else_has(lab: Lab) -> None:
    lab.pod.run("ip", "link", "add", "tap0", "type", "bridge")
    before = lab.picture()
    with pytest.raises(CriticalNetError, match="tap0: is there already, and is no tap but a bridge"):
        lab.set_up(BRIDGE)
    assert lab.picture() == before


def test_half_a_set_up_is_not_resumed(lab: Lab) -> None:
    lab.progresses.put("default", Progress.STARTED)
    with pytest.raises(CriticalNetError, match="network default: its set-up was begun"):
        lab.set_up(MASQUERADE)
    assert "tap0" not in lab.picture()["links"]


def test_an_interface_that_is_not_there_yet(lab: Lab) -> None:
    with pytest.raises(NetError, match="no interface pod") as caught:
        lab.set_up({"name": "late", "bridge": {}})
    assert not isinstance(caught.value, CriticalNetError), "it may come yet"
    lab.join("pod1ae2c4bd28a", "10.245.0", "fd10:245::", "0a:58:0a:f5:00:05")


def test_plugged_and_unplugged_while_the_guest_runs(lab: Lab) -> None:
    masqueraded(lab)
    interface = {"name": "red", "bridge": {}}
    pod_interface = "podb1f51a511f1"
    lab.join(pod_interface, "10.245.0", "fd10:245::", "0a:58:0a:f5:00:05")
    before = lab.picture()
    lab.set_up(interface)
    assert lab.cache.read("red").addresses == ("10.245.0.5",)  # type: ignore[union-attr]
    assert lab.link("tapb1f51a511f1")["master"] == "k6t-b1f51a511f1"
    lab.pings(lab.guest, "10.244.0.1")
    lab.set_up({**interface, "state": "absent"})
    links = lab.picture()["links"]
    assert set(links) == {*before["links"], "b1f51a511f1-nic"} - {pod_interface}
    assert lab.cache.read("red") is None
    assert not list((lab.root / "var/run/kubevirt-private").iterdir())
    lab.set_up({**interface, "state": "absent"})
    lab.pings(lab.guest, "10.244.0.1")


def test_two_pods_at_once(labs: Callable[..., Lab]) -> None:
    both = [labs(), labs()]
    errors: list[BaseException] = []

    def set_up(lab: Lab) -> None:
        try:
            lab.set_up(MASQUERADE)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=set_up, args=(lab,)) for lab in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    first, second = (lab.picture() for lab in both)
    assert set(first["links"]) == {"lo", "eth0", "k6t-eth0", "tap0"}
    assert first["rules"] == second["rules"] != ""
    assert not {"k6t-eth0", "tap0"} & {name for _, name in socket.if_nameindex()}, "none is here"
