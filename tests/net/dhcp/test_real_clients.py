"""The servers with real clients, in network namespaces."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.net.dhcp.conftest import GUEST_MAC, UNPRIVILEGED, Serve, attach, serving
from tests.net.namespaces import Namespace

pytestmark = pytest.mark.integration

Ask = Callable[..., dict[str, str] | None]
MASQUERADE = {"interface": "k6t-eth0", "name": "eth0", "ip": "10.0.2.2/24", "gateway": "10.0.2.1"}

# Asks for an address as a DHCPv6 client does: Solicit, then Request with what the Advertise said.
CLIENT6 = """
import socket, sys, time
index = socket.if_nametoindex("eth0")
client = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
client.bind(("::", 546))
client.settimeout(1)
identity = bytes.fromhex("0001000a00030001020000000077" + "0003000c000000070000000000000000")
def exchange(head, more=b""):
    for _ in range(60):
        try:
            client.sendto(bytes.fromhex(head) + identity + more, ("ff02::1:2", 547, 0, index))
            while (answer := client.recvfrom(1500)[0])[1:4].hex() != head[2:]:
                pass  # late, to what was asked before
            return answer
        except OSError as error:  # its own address may take a second or two to be usable
            last = error
            time.sleep(0.5)
    sys.exit(f"no answer: {last}")
print(exchange("01000001").hex())
print(exchange("03000002", bytes.fromhex("0002000a00030001020000000000")).hex())
"""


def test_a_client_is_told_everything(pod: Namespace, serve: Serve, ask: Ask, spaces: ExitStack) -> None:
    guest = spaces.enter_context(Namespace())
    attach(pod, guest, "k6t-eth0", "10.0.2.1/24")
    custom = {
        "tftpServerName": "tftp.example",
        "bootFileName": "boot.bin",
        "ntpServers": ["10.1.1.1", "10.1.1.2"],
        "privateOptions": [{"option": 240, "value": "mine"}],
    }
    routes = [("172.16.0.0/12", "10.0.2.9"), ("0.0.0.0/0", "10.0.2.1")]
    serve([{**MASQUERADE, "options": custom, "routes": routes}])

    found = ask(guest, "-O", "240")

    assert found is not None
    told = {
        key: found.get(key) for key in ("ip", "subnet", "router", "dns", "mtu", "domain", "lease", "serverid")
    }
    assert told == {
        "ip": "10.0.2.2",
        "subnet": "255.255.255.0",
        "router": "10.0.2.1",
        "dns": "10.9.8.7",
        "mtu": "1400",
        "domain": "a.svc.example",
        "lease": str(999 * 24 * 3600),
        "serverid": "10.0.2.1",
    }
    assert found["hostname"] == Path("/proc/sys/kernel/hostname").read_text().strip()
    assert found["search"] == "a.svc.example b.example"
    assert (found["tftp"], found["bootfile"], found["ntpsrv"]) == (
        "tftp.example",
        "boot.bin",
        "10.1.1.1 10.1.1.2",
    )
    assert found["staticroutes"] == "172.16.0.0/12 10.0.2.9 0.0.0.0/0 10.0.2.1"
    assert found["opt240"] == b"mine".hex()


def test_each_interface_has_its_server_and_only_the_guest_is_answered(
    pod: Namespace, serve: Serve, ask: Ask, spaces: ExitStack
) -> None:
    first, second, stranger = (spaces.enter_context(Namespace()) for _ in range(3))
    attach(pod, first, "k6t-eth0", "169.254.75.10/32")
    attach(pod, stranger, "k6t-eth0", "169.254.75.10/32", mac="02:00:00:00:00:99")
    attach(pod, second, "k6t-net1", "169.254.75.11/32", mac="02:00:00:00:00:78")
    serve(
        [
            {**MASQUERADE, "mac": GUEST_MAC.replace(":", "")},
            {
                "interface": "k6t-net1",
                "name": "net1",
                "ip": "10.7.0.5/16",
                "gateway": "10.7.0.1",
                "mac": "020000000078",
            },
        ]
    )
    for guest, address in ((first, "10.0.2.2"), (second, "10.7.0.5"), (first, "10.0.2.2")):
        found = ask(guest)
        assert found is not None
        assert found["ip"] == address
    assert ask(stranger, tries=3) is None


def test_a_client_that_asks_for_another_address_gets_its_own(
    pod: Namespace, serve: Serve, ask: Ask, spaces: ExitStack
) -> None:
    guest = spaces.enter_context(Namespace())
    attach(pod, guest, "k6t-eth0", "10.0.2.1/24")
    serve([MASQUERADE])
    found = ask(guest, "-r", "10.0.2.77")
    assert found is not None
    assert found["ip"] == "10.0.2.2"


def test_a_launcher_without_root_can_serve(pod: Namespace, ask: Ask, spaces: ExitStack) -> None:
    if subprocess.run([*UNPRIVILEGED, sys.executable, "-c", "import kvnode"], check=False).returncode:
        pytest.skip("this Python is root's alone")
    guest = spaces.enter_context(Namespace())
    attach(pod, guest, "k6t-eth0", "10.0.2.1/24")
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        Path(directory, "resolv.conf").write_text("")
        with serving(pod, Path(directory), [{**MASQUERADE, "ipv6": "fd10:0:2::2/120"}], UNPRIVILEGED):
            found = ask(guest)
    assert found is not None
    assert found["ip"] == "10.0.2.2"


def test_garbage_does_not_stop_a_server(pod: Namespace, serve: Serve, ask: Ask, spaces: ExitStack) -> None:
    guest = spaces.enter_context(Namespace())
    attach(pod, guest, "k6t-eth0", "10.0.2.1/24")
    serve([{**MASQUERADE, "ipv6": "fd10:0:2::2/120"}])
    guest.run("ip", "addr", "add", "10.0.2.50/24", "dev", "eth0")
    script = (
        "import os, socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "for size in (0, 1, 239, 240, 300, 1400):\n"
        "    for _ in range(20):\n"
        "        s.sendto(os.urandom(size), ('10.0.2.1', 67))\n"
    )
    guest.run(sys.executable, "-c", script)
    guest.run("ip", "addr", "flush", "dev", "eth0", "scope", "global")
    found = ask(guest)
    assert found is not None
    assert found["ip"] == "10.0.2.2"


def test_a_client_of_dhcpv6(pod: Namespace, serve: Serve, spaces: ExitStack) -> None:
    guest = spaces.enter_context(Namespace())
    attach(pod, guest, "k6t-eth0", "fd10:0:2::1/120")
    serve([{"interface": "k6t-eth0", "name": "eth0", "ipv6": "fd10:0:2::2/120"}])
    advertise, reply = guest.run(sys.executable, "-c", CLIENT6, timeout=300).split()
    assert (advertise[:8], reply[:8]) == ("02000001", "07000002")
    address = "fd100000000200000000000000000002"
    for message in (advertise, reply):
        assert f"0003002800000007{'00' * 8}00050018{address}05250a8005250a80" in message
        assert message.endswith("00170010fd000000000000000000000000000053")
    assert f"0002000a00030001{bridge_mac(pod)}" in reply


def bridge_mac(pod: Namespace) -> str:
    """The MAC address of the bridge, in hex."""
    script = "from kvnode.net import links; print(links.find('k6t-eth0').mac.hex())"
    return pod.run(sys.executable, "-c", script).strip()


@pytest.mark.skipif(shutil.which("dhclient") is None, reason="dhclient is not installed (isc-dhcp-client)")
def test_dhclient_takes_an_ipv6_address(
    pod: Namespace, serve: Serve, spaces: ExitStack, tmp_path: Path
) -> None:
    guest = spaces.enter_context(Namespace())
    attach(pod, guest, "k6t-eth0", "fd10:0:2::1/120")
    serve([{"interface": "k6t-eth0", "name": "eth0", "ipv6": "fd10:0:2::2/120"}])
    leases = tmp_path / "leases"
    command = [
        "dhclient",
        "-6",
        "-1",
        "-d",
        "-lf",
        str(leases),
        "-pf",
        str(tmp_path / "pid"),
        "-sf",
        "/bin/true",
    ]
    with guest.start([*command, "eth0"], stderr=subprocess.PIPE) as client:
        assert client.stderr is not None
        output = ""
        while "PRC: Bound to lease" not in output and (line := client.stderr.readline()):
            output += line
        client.terminate()
    assert "Bound to lease" in output
    assert "IAADDR fd10:0:2::2" in output.partition("RCV: Reply message")[2]
