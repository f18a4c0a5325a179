"""Traffic between a node and a real guest, through the network that the agent laid in the pod."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kvnode.agent.interfaces import interface_statuses
from kvnode.net import names
from tests.conftest import Guest
from tests.net.conftest import DEFAULT, GUEST_MAC, POD_MAC, Lab, eventually
from tests.net.guests import Running, boot, vmi_with
from tests.net.namespaces import Namespace
from tests.net.traffic import reached, serving
from tests.reports import report

pytestmark = pytest.mark.integration

JUMBO = 8901
# Has an entry in the pod's /etc/passwd.
LAUNCHER = 64055
# Less the headers of IP and ICMP.
LARGEST4, LARGEST6 = JUMBO - 28, JUMBO - 48
NODE4, NODE6, POD4, POD6 = "10.244.0.1", "fd10:244::1", "10.244.0.5", "fd10:244::5"
NO_WAIT6 = "echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad"
ADDRESS6 = f"{NO_WAIT6}; ip -6 addr add fd10:0:2::2/120 dev eth0; ip -6 route add default via fd10:0:2::1"

# Answers each datagram with whom it takes the sender for.
_UDP_SERVER = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", int(sys.argv[1])))
print("listening", flush=True)
while True:
    data, peer = server.recvfrom(65536)
    server.sendto(data, peer)
    print(peer[0], flush=True)
"""
_UDP_CLIENT = """
import socket, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.settimeout(10)
client.connect((sys.argv[1], int(sys.argv[2])))
client.send(b"?")
try:
    client.recv(100)
except ConnectionRefusedError:
    print("refused")
"""


@pytest.fixture(scope="module")
def libvirt_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """libvirt's cache."""
    return tmp_path_factory.mktemp("libvirt-cache")


@contextmanager
def datagrams(where: Namespace, port: int) -> Iterator[Callable[[], str]]:
    """A UDP server; gives who sent the next datagram."""
    with where.start([sys.executable, "-c", _UDP_SERVER, str(port)], stdout=subprocess.PIPE) as process:
        output = process.stdout
        assert output is not None
        try:
            assert output.readline() == "listening\n"
            yield lambda: output.readline().strip()
        finally:
            process.kill()


def guest_serves(guest: Running, *ports: int) -> None:
    """TCP servers in the guest."""
    for port in ports:
        guest.run(f"(nc -ll -p {port} -e echo guest guest </dev/null >/dev/null 2>&1 &)")
    for port in ports:
        guest.run(f"until netstat -tln | grep -q ':{port} '; do sleep 0.1; done")


def answers_datagrams(lab: Lab, guest: Running, address: str, port: int) -> bool:
    """Whether it is the guest that refuses a datagram from the node."""
    before = guest.counter("Udp", "NoPorts")
    said = lab.node.run(sys.executable, "-c", _UDP_CLIENT, address, str(port))
    assert said == "refused\n"
    return guest.counter("Udp", "NoPorts") == before + 1


def goes_out(lab: Lab, guest: Running, seen_as: str) -> None:
    """The guest reaches the node over TCP and UDP, and the node takes it for ``seen_as``."""
    with serving(lab.node, 8000, "node"):
        assert guest.run(f"nc -w 20 {NODE4} 8000") == f"node {'::ffff:' + seen_as}"
    before = guest.counter("Udp", "InDatagrams")
    with datagrams(lab.node, 53) as sender:
        # The answer is none that nslookup understands, but it comes.
        guest.run(f"timeout 20 nslookup some.name {NODE4}; true")
        assert sender() == seen_as
    assert guest.counter("Udp", "InDatagrams") > before


def pinged(lab: Lab, guest: Running, address: str, size: int) -> None:
    """It is the guest that answers."""
    lab.pings(lab.node, address, size)
    family, setting = ("ipv6", "icmp/echo_ignore_all") if ":" in address else ("ipv4", "icmp_echo_ignore_all")
    guest.run(f"echo 1 >/proc/sys/net/{family}/{setting}")
    with pytest.raises(AssertionError):
        lab.node.run(sys.executable, "-m", "tests.net.ping", address)
    guest.run(f"echo 0 >/proc/sys/net/{family}/{setting}")


@report("B40")
def test_masquerade(labs: Callable[..., Lab], guest: Guest, libvirt_cache: Path) -> None:
    lab = labs(mtu=JUMBO)

    def check(vm: Running) -> None:
        assert vm.run("cat /sys/class/net/eth0/address") == GUEST_MAC
        assert vm.run("cat /sys/class/net/eth0/mtu") == str(JUMBO)
        assert "inet 10.0.2.2/24 " in vm.run("ip -4 addr show eth0"), "as DHCP said"
        vm.run(ADDRESS6)
        vm.run(f"ping -c 1 -W 20 -s {LARGEST4} {NODE4}")
        vm.run(f"ping -6 -c 1 -W 20 -s {LARGEST6} {NODE6}")
        pinged(lab, vm, POD4, LARGEST4)
        pinged(lab, vm, POD6, LARGEST6)
        goes_out(lab, vm, POD4)
        with serving(lab.node, 8001, "node"):
            assert vm.run(f"nc -w 20 {NODE6} 8001") == f"node {POD6}"
        guest_serves(vm, 80, 65000)
        for port in (80, 65000):
            assert reached(lab.node, POD4, port)[0] == reached(lab.node, POD6, port)[0] == "guest"
        assert answers_datagrams(lab, vm, POD4, 9)
        assert reached(lab.pod, "127.0.0.1", 80)[0] == "guest"

    vmi = vmi_with([{"name": "default", "masquerade": {}, "macAddress": GUEST_MAC}])
    boot(lab, guest, libvirt_cache, vmi, check)


def test_masquerade_of_listed_ports(lab: Lab, guest: Guest, libvirt_cache: Path) -> None:
    """With a launcher that is not root."""
    ports = [{"port": 80}, {"port": 5353, "protocol": "UDP"}]

    def check(vm: Running) -> None:
        assert vm.run("cat /sys/class/net/eth0/address") == POD_MAC, "none was asked for"
        vm.run(ADDRESS6)
        guest_serves(vm, 80, 81, 5353)
        assert reached(lab.node, POD4, 80)[0] == reached(lab.node, POD6, 80)[0] == "guest"
        with serving(lab.pod, 81, "pod"), serving(lab.pod, 5353, "pod"):
            for address in (POD4, POD6):
                assert reached(lab.node, address, 81)[0] == "pod"
                assert reached(lab.node, address, 5353)[0] == "pod", "listed for UDP alone"
        assert answers_datagrams(lab, vm, POD4, 5353)
        assert not answers_datagrams(lab, vm, POD4, 80), "listed for TCP alone"
        goes_out(lab, vm, POD4)

    vmi = vmi_with([{"name": "default", "masquerade": {}, "ports": ports}])
    boot(lab, guest, libvirt_cache, vmi, check, user=LAUNCHER)


def test_bridge(labs: Callable[..., Lab], guest: Guest, libvirt_cache: Path) -> None:
    lab = labs(mtu=JUMBO)

    def check(vm: Running) -> None:
        assert vm.run("cat /sys/class/net/eth0/address") == POD_MAC
        assert vm.run("cat /sys/class/net/eth0/mtu") == str(JUMBO)
        assert f"inet {POD4}/24 " in vm.run("ip -4 addr show eth0"), "as DHCP said"
        assert f"default via {NODE4} " in vm.run("ip route")
        vm.run(f"ping -c 1 -W 20 -s {LARGEST4} {NODE4}")
        pinged(lab, vm, POD4, LARGEST4)
        goes_out(lab, vm, POD4)
        guest_serves(vm, 80)
        assert reached(lab.node, POD4, 80) == ("guest", "guest")
        assert answers_datagrams(lab, vm, POD4, 9)
        # IPv6 is the guest's own affair: nobody answers for the pod any more.
        vm.run(f"{NO_WAIT6}; ip -6 addr add {POD6}/64 dev eth0")
        vm.run(f"ping -6 -c 1 -W 20 -s {LARGEST6} {NODE6}")
        pinged(lab, vm, POD6, LARGEST6)
        links = lab.picture()["links"]
        up = [name for name, link in links.items() if link["up"] and link["addr_info"]]
        assert sorted(up) == ["k6t-eth0", "lo"], "the pod itself is not reached any more"
        assert links["k6t-eth0"]["addr_info"] == ["169.254.75.10/32"]

    boot(lab, guest, libvirt_cache, vmi_with([{"name": "default", "bridge": {}}]), check)


def test_several_networks_and_what_the_status_says_of_them(
    lab: Lab, guest: Guest, libvirt_cache: Path
) -> None:
    """A pod of IPv4 alone, with a second network; cards of two queues."""
    lab.pod.run("sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6")
    red = names.hashed("red")
    lab.join(red, "10.245.0", "fd10:245::", "0a:58:0a:f5:00:05")
    vmi = vmi_with(
        [
            {"name": "red", "bridge": {}, "macAddress": GUEST_MAC},
            {"name": "default", "masquerade": {}},
        ],
        [{"name": "red", "multus": {"networkName": "nad"}}, DEFAULT],
    )
    vmi["spec"]["domain"]["cpu"] |= {"cores": 2, "sockets": 1, "threads": 1, "maxSockets": 1}
    vmi["spec"]["domain"]["devices"]["networkInterfaceMultiqueue"] = True

    def check(vm: Running) -> None:
        cards = {vm.run(f"cat /sys/class/net/{card}/address"): card for card in ("eth0", "eth1")}
        assert set(cards) == {GUEST_MAC, POD_MAC}
        first, second = cards[POD_MAC], cards[GUEST_MAC]
        assert "inet 10.0.2.2/24 " in vm.run(f"ip -4 addr show {first}")
        assert "inet 10.245.0.5/24 " in vm.run(f"ip -4 addr show {second}")
        for card in (first, second):
            assert vm.run(f"ls -d /sys/class/net/{card}/queues/tx-*").count("tx-") == 2
        vm.run(f"ping -c 1 -W 20 -I {first} {NODE4}")
        vm.run(f"ping -c 1 -W 20 -I {second} 10.245.0.1")
        lab.pings(lab.node, POD4)
        lab.pings(lab.node, "10.245.0.5")
        eventually(lambda: _status_is(lab, vm, first, second), 60)

    boot(lab, guest, libvirt_cache, vmi, check)


def _status_is(lab: Lab, vm: Running, first: str, second: str) -> None:
    common = {"queueCount": 2, "linkState": "up", "infoSource": "domain, guest-agent"}
    found = interface_statuses(dict(vm.pod.vmi), vm.domain(), lab)
    assert [one["name"] for one in found[:2]] == ["default", "red"], "the pod's network first"
    assert found[0] == {
        **common,
        "name": "default",
        "mac": POD_MAC,
        "ipAddress": POD4,
        "ipAddresses": [POD4],
        "interfaceName": first,
    }
    addresses = found[1].pop("ipAddresses")
    assert addresses[0] == "10.245.0.5"
    assert found[1] == {
        **common,
        "name": "red",
        "mac": GUEST_MAC,
        "ipAddress": "10.245.0.5",
        "interfaceName": second,
    }


def test_a_network_that_comes_and_goes_while_the_guest_runs(
    lab: Lab, guest: Guest, libvirt_cache: Path
) -> None:
    red = names.hashed("red")

    def check(vm: Running) -> None:
        lab.join(red, "10.245.0", "fd10:245::", "0a:58:0a:f5:00:05")
        before = lab.picture()
        vmi = copy.deepcopy(dict(vm.pod.vmi))
        card = {"name": "red", "bridge": {}, "model": "virtio", "macAddress": GUEST_MAC}
        vmi["spec"]["networks"].append({"name": "red", "multus": {"networkName": "nad"}})
        vmi["spec"]["domain"]["devices"]["interfaces"].append(card)
        brought = {"name": "red", "infoSource": "multus-status", "podInterfaceName": red}
        vmi["status"] = {"phase": "Running", "interfaces": [brought]}
        lab.set_up(card)
        vm.sync(vmi)
        vm.run("until [ -e /sys/class/net/eth1 ]; do sleep 0.1; done; ip link set eth1 up")
        vm.run("udhcpc -i eth1 -q -n -t 10 -T 2 -s /etc/udhcpc.sh")
        assert vm.run("cat /sys/class/net/eth1/address") == GUEST_MAC
        assert vm.run("cat /sys/class/net/eth1/mtu") == str(lab.mtu)
        assert "inet 10.245.0.5/24 " in vm.run("ip -4 addr show eth1")
        vm.run("ping -c 1 -W 20 10.245.0.1")
        lab.pings(lab.node, "10.245.0.5")
        card["state"] = "absent"
        vm.sync(vmi)
        vm.run("until [ ! -e /sys/class/net/eth1 ]; do sleep 0.1; done")
        lab.set_up(card)
        assert set(lab.picture()["links"]) == {*before["links"], f"{red[3:]}-nic"} - {red}
        vm.run(f"ping -c 1 -W 20 {NODE4}")

    boot(lab, guest, libvirt_cache, vmi_with([{"name": "default", "masquerade": {}}]), check)
