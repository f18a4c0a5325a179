"""Pods of one IP version, of several interfaces, and of names as long as may be."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyroute2.netlink.exceptions import NetlinkError

from kvnode.net import names
from kvnode.net.errors import CriticalNetError, NetError
from kvnode.net.kernel import Kernel
from kvnode.net.podnetwork import PodNetworks
from kvnode.spec.config import ClusterConfig
from tests.net.conftest import DEFAULT, GUEST_MAC, POD_MAC, Lab
from tests.net.traffic import reached, serving

MASQUERADE = {"name": "default", "masquerade": {}}
BRIDGE = {"name": "default", "bridge": {}}
RED, BLUE = {"name": "red", "bridge": {}}, {"name": "blue", "masquerade": {}}
both = pytest.mark.parametrize("interface", [MASQUERADE, BRIDGE], ids=["masquerade", "bridge"])


def _without(lab: Lab, family: str) -> None:
    """A pod of the other family alone."""
    if family == "-6":
        for which in ("all", "default", "eth0"):
            lab.pod.run("sh", "-c", f"echo 1 >/proc/sys/net/ipv6/conf/{which}/disable_ipv6")
    else:
        lab.pod.run("ip", "-4", "addr", "flush", "dev", "eth0")


def _lease(lab: Lab, pod_interface: str = "eth0") -> dict[str, Any]:
    path = lab.root / f"var/run/kubevirt-private/vif-cache-{pod_interface}.json"
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


@pytest.mark.integration
class TestOneFamily:
    def test_masquerade_where_ipv6_is_switched_off(self, lab: Lab) -> None:
        _without(lab, "-6")
        lab.set_up(MASQUERADE)
        assert lab.link("k6t-eth0")["mtu"] == lab.mtu
        picture = lab.picture()
        assert picture["links"]["k6t-eth0"]["addr_info"] == ["10.0.2.1/24"]
        assert "table ip6" not in picture["rules"]
        assert lab.sysctl("ipv6/conf/all/forwarding") == "0"
        lab.plug()
        lab.address("10.0.2.2/24", via=("10.0.2.1",))
        with serving(lab.guest, 80, "guest"), serving(lab.node, 81, "node"):
            assert reached(lab.node, "10.244.0.5", 80) == ("guest", "10.244.0.1")
            assert reached(lab.guest, "10.244.0.1", 81) == ("node", "10.244.0.5")
        found = lab.cache.read("default")
        assert found is not None
        assert found.addresses == ("10.244.0.5",)

    def test_masquerade_of_ipv6_alone(self, lab: Lab) -> None:
        _without(lab, "-4")
        lab.set_up(MASQUERADE)
        picture = lab.picture()
        assert picture["links"]["k6t-eth0"]["addr_info"] == ["fd10:0:2::1/120"]
        assert "table ip " not in picture["rules"]
        assert lab.sysctl("ipv4/ip_forward") == lab.sysctl("ipv4/conf/k6t-eth0/route_localnet") == "0"
        lab.plug()
        lab.address("fd10:0:2::2/120", via=("fd10:0:2::1",))
        with serving(lab.guest, 80, "guest"), serving(lab.node, 81, "node"):
            assert reached(lab.node, "fd10:244::5", 80) == ("guest", "fd10:244::1")
            assert reached(lab.guest, "fd10:244::1", 81) == ("node", "fd10:244::5")
        found = lab.cache.read("default")
        assert found is not None
        assert found.addresses == ("fd10:244::5",)

    def test_a_bridge_where_ipv6_is_switched_off(self, lab: Lab) -> None:
        _without(lab, "-6")
        lab.set_up(BRIDGE)
        lab.plug(mac=POD_MAC)
        lab.address("10.244.0.5/24", via=("10.244.0.1",))
        lab.pings(lab.guest, "10.244.0.1")
        assert lab.picture()["links"]["eth0"]["addr_info"] == ["10.244.0.5/24"]

    def test_a_bridge_of_ipv6_alone_gives_the_guest_no_lease(self, lab: Lab) -> None:
        _without(lab, "-4")
        lab.set_up(BRIDGE)
        assert _lease(lab)["IPAMDisabled"] is True
        assert lab.picture()["links"]["k6t-eth0"]["addr_info"] == []
        assert lab.sysctl("ipv4/conf/all/arp_ignore") == "0"
        assert lab.cache.read("default").addresses == ()  # type: ignore[union-attr]
        lab.plug(mac=POD_MAC)
        lab.address("fd10:244::5/64")
        lab.pings(lab.guest, "fd10:244::1")

    @both
    def test_a_pod_without_an_address(self, lab: Lab, interface: dict[str, Any]) -> None:
        _without(lab, "-4")
        _without(lab, "-6")
        lab.set_up(interface)
        picture = lab.picture()
        assert picture["links"]["k6t-eth0"]["addr_info"] == []
        assert picture["rules"] == ""
        assert picture["links"]["tap0"]["master"] == "k6t-eth0"

    @both
    def test_a_failure_is_undone_where_ipv6_is_switched_off(
        self, lab: Lab, interface: dict[str, Any]
    ) -> None:
        _without(lab, "-6")
        lab.pod.run("ip", "link", "add", "tap0", "type", "bridge")
        before = lab.picture()
        with pytest.raises(CriticalNetError, match="tap0"):
            lab.set_up(interface)
        assert lab.picture() == before
        lab.pings(lab.pod, "10.244.0.1")


@pytest.mark.integration
class TestSeveral:
    def test_by_their_hashes_with_names_as_long_as_the_kernel_takes(self, lab: Lab) -> None:
        red, blue = names.hashed("red"), names.hashed("blue")
        lab.join(red, "10.245.0", "fd10:245::", "0a:58:0a:f5:00:05")
        lab.join(blue, "10.246.0", "fd10:246::", "0a:58:0a:f6:00:05")
        lab.set_up(MASQUERADE, RED, BLUE)
        links = lab.picture()["links"]
        for network, pod in (("red", red), ("blue", blue)):
            tap, bridge = f"tap{pod[3:]}", f"k6t-{pod[3:]}"
            assert len(bridge) == 15
            assert links[tap]["master"] == bridge, network
        assert len(f"{red[3:]}-nic") == 15
        assert links[f"{red[3:]}-nic"]["master"] == f"k6t-{red[3:]}"
        assert links[red]["addr_info"] == ["10.245.0.5/24", "fd10:245::5/64"]
        # The second and later ones on a bridge have another address of their own.
        assert links[f"k6t-{red[3:]}"]["addr_info"] == ["169.254.75.11/32"]
        rules = lab.pod.run("nft", "-s", "list", "ruleset")
        assert rules.count("masquerade") == 2, "one for each family, of the first that masquerades"
        assert 'iifname "eth0"' in rules
        lab.plug(f"tap{red[3:]}", mac=GUEST_MAC)
        lab.address("10.245.0.5/24")
        lab.pings(lab.guest, "10.245.0.1")
        lab.pings(lab.pod, "10.244.0.1")

    def test_by_their_ordinals(self, lab: Lab) -> None:
        lab.join("net1", "10.245.0", "fd10:245::", "0a:58:0a:f5:00:05")
        lab.join("net2", "10.246.0", "fd10:246::", "0a:58:0a:f6:00:05")
        lab.set_up(MASQUERADE, RED, {"name": "blue", "bridge": {}})
        links = lab.picture()["links"]
        ours = {f"{prefix}net{n}" for n in (1, 2) for prefix in ("k6t-", "")}
        ours |= {f"net{n}-nic" for n in (1, 2)} | {"tap1", "tap2", "tap0", "k6t-eth0", "eth0", "lo"}
        assert set(links) - {"net1-end", "net2-end"} == ours
        assert (links["tap1"]["master"], links["tap2"]["master"]) == ("k6t-net1", "k6t-net2")
        assert _lease(lab, "net2")["IP"]["IP"] == "10.246.0.5"
        lab.plug("tap2")
        lab.address("10.246.0.5/24")
        lab.pings(lab.guest, "10.246.0.1")

    def test_a_primary_interface_of_another_name(self, lab: Lab) -> None:
        lab.join("ovn-udn1", "10.245.0", "fd10:245::", "0a:58:0a:f5:00:05")
        lab.set_up(MASQUERADE, statuses=[{"name": "default", "podInterfaceName": "ovn-udn1"}])
        assert lab.link("tap0")["master"] == "k6t-ovn-udn1"
        assert lab.cache.read("default").addresses == ("10.245.0.5", "fd10:245::5")  # type: ignore[union-attr]

    @both
    def test_a_name_that_leaves_no_room_for_ours(self, lab: Lab, interface: dict[str, Any]) -> None:
        lab.join("of-15-character", "10.245.0", "fd10:245::", "0a:58:0a:f5:00:05")
        before = lab.picture()
        statuses = [{"name": "default", "podInterfaceName": "of-15-character"}]
        with pytest.raises(CriticalNetError, match=r"k6t-of-15-character: .* longer than 15 bytes"):
            lab.set_up(interface, statuses=statuses)
        assert lab.picture() == before


@pytest.mark.integration
def test_a_vmi_that_comes_back_to_its_node(
    labs: Callable[..., Lab], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first launcher's network is no word on its second's; and neither is touched for the other."""
    monkeypatch.setenv("MY_POD_IP", "10.244.0.9")
    first, second = labs(), labs()
    networks = PodNetworks(tmp_path / "agent", owner=0)
    devices = {"interfaces": [MASQUERADE]}
    vmi = {"metadata": {"uid": "uid-1"}, "spec": {"networks": [DEFAULT], "domain": {"devices": devices}}}
    untouched = second.picture()
    networks.setup(vmi, [DEFAULT], first.pod.pid, ClusterConfig())
    assert networks.pod_addresses("uid-1", "default") == ("10.244.0.5", "fd10:244::5")
    assert second.picture() == untouched
    laid = first.picture()
    networks.teardown("uid-1")
    networks.setup(vmi, [DEFAULT], second.pod.pid, ClusterConfig())
    assert second.link("tap0")["master"] == "k6t-eth0"
    assert first.picture() == laid


@pytest.mark.parametrize("binding", ["slirp", "macvtap", "passt"])
@pytest.mark.integration
def test_bindings_that_are_none_of_ours(lab: Lab, binding: str) -> None:
    before = lab.picture()
    with pytest.raises(NetError, match=f"default: .*{binding}"):
        lab.set_up({"name": "default", binding: {}})
    assert lab.picture() == before


class _Netlink:
    """A kernel that has these kinds of interfaces."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds
        self.made: list[tuple[str, str]] = []

    def link(self, command: str, **about: Any) -> list[Any]:
        if command == "add":
            if about["kind"] not in self._kinds:
                raise NetlinkError(errno.EOPNOTSUPP, "Operation not supported")
            self.made.append((about["ifname"], about["kind"]))
            return []
        return [_Message(self.made[-1])]


class _Message(dict[str, Any]):
    def __init__(self, made: tuple[str, str]) -> None:
        super().__init__(index=9)
        self._made = made

    def get_attr(self, name: str) -> Any:
        return self._made[0] if name == "IFLA_IFNAME" else None


@pytest.mark.parametrize("kinds", [("dummy", "veth"), ("veth",)])
def test_a_dummy_where_there_are_any_and_else_one_end_of_a_pair(kinds: tuple[str, ...]) -> None:
    kernel = Kernel()
    kernel._socket = _Netlink(*kinds)
    assert kernel.add_link("eth0", "dummy").kind == kinds[0]
    assert kernel._socket.made == [("eth0", kinds[0])]


def test_a_kernel_that_has_neither() -> None:
    kernel = Kernel()
    kernel._socket = _Netlink()
    with pytest.raises(NetError, match="in a dummy's place: Operation not supported"):
        kernel.add_link("eth0", "dummy")
