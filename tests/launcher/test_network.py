"""The launcher's half of a pod's network, in a namespace where the agent's half has been done."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kvnode.net import names
from tests.net.dhcp.conftest import ask, attach, busybox
from tests.net.namespaces import Namespace

__all__ = ["ask", "busybox"]

pytestmark = pytest.mark.integration

RED = names.hashed("red")
DOMAIN = """<domain xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0"><devices>
<interface type="ethernet"><mac address="00:00:00:00:00:00"/><alias name="ua-default"/></interface>
<interface type="ethernet"><alias name="ua-red"/></interface>
</devices><qemu:commandline/></domain>"""


def vmi(**red: Any) -> dict[str, Any]:
    """A VMI with the pod's network masqueraded and another bridged."""
    interfaces = [{"name": "default", "masquerade": {}}, {"name": "red", "bridge": {}, **red}]
    networks = [{"name": "default", "pod": {}}, {"name": "red", "multus": {"networkName": "r"}}]
    return {
        "metadata": {"name": "v", "namespace": "n"},
        "spec": {"domain": {"devices": {"interfaces": interfaces}}, "networks": networks},
    }


@pytest.fixture
def pod() -> Iterator[Namespace]:
    """A pod with the pod's interface, the red network's, and a tap for each."""
    with Namespace() as space:
        for name, mac, mtu in (("eth0", "01", 1400), (RED, "02", 8901), (names.nic(RED), "03", 8902)):
            space.run(
                "ip",
                "link",
                "add",
                name,
                "mtu",
                str(mtu),
                "address",
                f"02:00:00:00:00:{mac}",
                "type",
                "bridge",
            )
        space.run("ip", "addr", "add", "10.244.0.5/24", "dev", "eth0")
        for tap in ("tap0", f"tap{RED[3:]}"):
            space.run("ip", "tuntap", "add", "dev", tap, "mode", "tap")
        yield space


def leave_cache(directory: Path, mac: str) -> None:
    """What the agent leaves of the red interface."""
    mask = base64.b64encode(bytes((255, 255, 0, 0))).decode()
    content = {
        "IP": {"IP": "10.7.0.5", "Mask": mask},
        "MAC": base64.b64encode(bytes.fromhex(mac.replace(":", ""))).decode(),
        "Gateway": "10.7.0.1",
        "Routes": [{"Dst": None, "Gw": "10.7.0.1"}],
    }
    (directory / f"vif-cache-{RED}.json").write_text(json.dumps(content))
    (directory / "resolv.conf").write_text("")


@contextmanager
def launched(
    pod: Namespace,
    directory: Path,
    machine: dict[str, Any],
    networks: list[str] | None = None,
    **attachments: str,
) -> Iterator[ET.Element | str]:
    """The domain that the launcher made, while it serves; or what it complained of."""
    arguments = [sys.executable, "-m", "tests.launcher.pod_network", str(directory)]
    given = {"vmi": machine, "domain": DOMAIN, "attachments": attachments, "networks": networks}
    with pod.start(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(given) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        yield answer if answer.startswith("error: ") else ET.fromstring(answer)
        process.communicate(timeout=60)


def described(domain: ET.Element | str) -> list[dict[str, dict[str, str]]]:
    """What was filled in of each interface."""
    assert isinstance(domain, ET.Element)
    return [
        {child.tag: dict(child.attrib) for child in interface if child.tag != "alias"}
        for interface in domain.iterfind("devices/interface")
    ]


def test_taps_are_named_and_each_guest_is_told_its_addresses(
    pod: Namespace, tmp_path: Path, ask: Any
) -> None:
    leave_cache(tmp_path, "02:00:00:00:00:88")
    with ExitStack() as stack:
        first, second = (stack.enter_context(Namespace()) for _ in range(2))
        attach(pod, first, "k6t-eth0", "10.0.2.1/24")
        attach(pod, second, names.bridge(RED), "169.254.75.11/32", mac="02:00:00:00:00:88")
        machine = vmi(macAddress="02-00-00-00-00-88")
        with launched(pod, tmp_path, machine, default="tap", red="tap") as domain:
            assert described(domain) == [
                {
                    "mtu": {"size": "1400"},
                    "mac": {"address": "02:00:00:00:00:01"},
                    "target": {"dev": "tap0", "managed": "no"},
                },
                {
                    "mtu": {"size": "8901"},
                    "mac": {"address": "02:00:00:00:00:88"},
                    "target": {"dev": f"tap{RED[3:]}", "managed": "no"},
                },
            ]
            told = [ask(first), ask(second)]
    assert [(one["ip"], one["router"], one["mtu"]) for one in told] == [
        ("10.0.2.2", "10.0.2.1", "1400"),
        ("10.7.0.5", "10.7.0.1", "8902"),
    ]


def test_interfaces_that_are_attached_otherwise_or_gone_stay_as_they_are(
    pod: Namespace, tmp_path: Path
) -> None:
    with launched(pod, tmp_path, vmi(state="absent"), default="managedTap", red="tap") as domain:
        assert described(domain) == [{"mac": {"address": "00:00:00:00:00:00"}}, {}]
    assert list(tmp_path.iterdir()) == []


def test_only_the_networks_that_are_asked_for(pod: Namespace, tmp_path: Path) -> None:
    pod.run("ip", "link", "add", "k6t-eth0", "type", "bridge")
    (tmp_path / "resolv.conf").write_text("")
    with launched(pod, tmp_path, vmi(), ["default"], default="tap", red="tap") as domain:
        first, second = described(domain)
        assert first["target"] == {"dev": "tap0", "managed": "no"}
        assert second == {}
        assert [mark.name for mark in tmp_path.glob("dhcp_started-*")] == ["dhcp_started-eth0"]


def test_what_is_missing_is_named(pod: Namespace, tmp_path: Path) -> None:
    with launched(pod, tmp_path, vmi(), red="tap") as complaint:
        assert "error: network red: " in str(complaint)
        assert f"vif-cache-{RED}.json" in str(complaint)
    pod.run("ip", "link", "del", RED)
    with launched(pod, tmp_path, vmi(), red="tap") as complaint:
        assert complaint == f"error: network red: the pod has no interface {RED} or net1"


def test_a_bridged_interface_whose_nic_is_gone_is_named(pod: Namespace, tmp_path: Path) -> None:
    leave_cache(tmp_path, "02:00:00:00:00:88")
    pod.run("ip", "link", "del", names.nic(RED))
    with launched(pod, tmp_path, vmi(), red="tap") as complaint:
        assert complaint == f"error: network red: the pod has no interface {names.nic(RED)}"
