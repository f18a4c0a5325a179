"""The pod's network through the agent's loop, against a real API server and in real namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kvnode.kube.objects import Object
from tests.agent.lab import Lab, called, lab, until
from tests.agent.node import SPEC, configuration, eventually
from tests.cluster.cluster import Cluster
from tests.kube.loops import real_time
from tests.net.conftest import GUEST_MAC, POD_MAC
from tests.net.conftest import Lab as Network
from tests.reports import report

__all__ = ["configuration"]

pytestmark = [pytest.mark.cluster, pytest.mark.integration]

NETWORKED = {
    **SPEC,
    "networks": [{"name": "default", "pod": {}}],
    "domain": {
        **SPEC["domain"],  # type: ignore[dict-item]
        "devices": {"interfaces": [{"name": "default", "masquerade": {}, "macAddress": GUEST_MAC}]},
    },
}
JUMBO = 8901
CARD = {"MAC": {"MAC": GUEST_MAC}, "Alias": {"Name": "default"}, "Type": "ethernet"}


@pytest.fixture(autouse=True)
def _agents_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_POD_IP", "10.244.0.9")


@asynccontextmanager
async def networked(
    control_plane: Cluster, namespace: str, folder: Path, mtu: int = 1450
) -> AsyncIterator[tuple[Lab, Network]]:
    """A node whose one pod has a network namespace."""
    with ExitStack() as stack:
        network = Network(stack, folder, mtu)
        async with lab(control_plane, namespace) as node:
            node.inside = network.pod.command()
            yield node, network


async def interfaces(node: Lab, source: str) -> list[dict[str, Any]]:
    """The status' interfaces, once the first of them is known from there."""

    async def check() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await node.get())["status"].get("interfaces") or []
        return found if found and found[0].get("infoSource") == source else []

    found: list[dict[str, Any]] = await eventually(check)
    return found


def condition(vmi: Object, kind: str) -> str:
    """A condition's message."""
    found = [one for one in vmi["status"].get("conditions") or () if one["type"] == kind]
    return str(found[0].get("message")) if found else ""


@report("B40")
@real_time
async def test_from_the_first_link_to_the_status(
    control_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with networked(control_plane, namespace, tmp_path, JUMBO) as (node, network):
        async with node.agent():
            remote = await node.launch(spec=NETWORKED)
            await called(remote, "sync")
            assert network.link("tap0")["master"] == "k6t-eth0"
            assert network.link("tap0")["mtu"] == network.link("k6t-eth0")["mtu"] == JUMBO
            records = node.settings.private / "network-info-cache" / remote.uid
            assert (records / "default").stat().st_mode & 0o777 == 0o604
            await remote.do("say", "cards", [CARD])
            await remote.become("Running", "Unknown")
            await node.until("Running")
            pods = {"ipAddress": "10.244.0.5", "ipAddresses": ["10.244.0.5", "fd10:244::5"]}
            known = {"name": "default", "mac": GUEST_MAC, "queueCount": 1, "linkState": "up"}
            (found,) = await interfaces(node, "domain")
            assert found == {**known, **pods, "infoSource": "domain"}
            mine = {
                "Mac": GUEST_MAC,
                "Ip": "10.0.2.2",
                "IPs": ["10.0.2.2", "fe80::1"],
                "InterfaceName": "ens3",
            }
            its = {
                "Mac": "02:00:00:00:00:99",
                "Ip": "172.17.0.1",
                "IPs": ["172.17.0.1"],
                "InterfaceName": "docker0",
            }
            await remote.do("say", "told", [mine, its])
            await remote.do("tell", "MODIFIED")
            first, second = await interfaces(node, "domain, guest-agent")
            assert first == {
                **known,
                "ipAddress": "10.244.0.5",
                "ipAddresses": ["10.244.0.5"],
                "interfaceName": "ens3",
                "infoSource": "domain, guest-agent",
            }
            assert (second["interfaceName"], second["infoSource"]) == ("docker0", "guest-agent")
            await node.history.reaches(await node.get())
            settled = len(node.history.versions)
            for _ in range(3):
                await remote.do("tell", "MODIFIED")
            await asyncio.sleep(1)
            assert len(node.history.versions) == settled, "nothing new, nothing written"
        # Another agent lays nothing anew, and knows the pod's addresses.
        before = network.picture()
        await node.history.reaches(await node.get())
        written = len(node.history.versions)
        async with node.agent():
            await remote.do("tell", "MODIFIED")
            await asyncio.sleep(2)
            assert network.picture() == before
            for version in node.history.versions[written:]:
                assert version["status"]["interfaces"] == [first, second]
            await node.remove()
            await called(remote, "kill")
            await remote.become("Shutoff", "Destroyed")
            await called(remote, "delete")
            await remote.stop()
            await until(lambda: not records.exists())


@real_time
async def test_a_pod_whose_interface_comes_late(
    control_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Is waited for, and told of."""
    async with networked(control_plane, namespace, tmp_path) as (node, network):
        network.pod.run("ip", "link", "del", "eth0")
        async with node.agent():
            remote = await node.launch(spec=NETWORKED)

            async def told() -> bool:
                return "no interface eth0" in condition(await node.get(), "Synchronized")

            await eventually(told)
            assert "sync" not in remote.calls
            network.join("eth0", "10.244.0", "fd10:244::", POD_MAC)
            await called(remote, "sync")
            assert network.link("tap0")["master"] == "k6t-eth0"
            assert node.history.phases() in (["Scheduled"], ["Scheduled", "Running"])


def take_the_tap(network: Network) -> None:
    network.pod.run("ip", "link", "add", "tap0", "type", "bridge")


def take_the_chain(network: Network) -> None:
    """By one of another type: the kernel refuses the agent's."""
    network.pod.run("nft", "add", "table", "ip", "nat")
    network.pod.run("nft", "add chain ip nat prerouting { type filter hook prerouting priority 0 ; }")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [(take_the_tap, "tap0: is there already"), (take_the_chain, "nft: the rules are refused")],
)
@real_time
async def test_a_network_that_cannot_be_set_up(
    control_plane: Cluster,
    namespace: str,
    tmp_path: Path,
    spoil: Callable[[Network], None],
    told: str,
) -> None:
    """Ends its VMI, says why, and leaves the pod as it was; another VMI of the node is not hurt."""
    async with networked(control_plane, namespace, tmp_path) as (node, network):
        spoil(network)
        before = network.picture()
        rules = network.pod.run("nft", "list", "ruleset")
        async with node.agent():
            other = await node.run("other")
            remote = await node.launch(spec=NETWORKED)
            failed = await node.until("Failed")
            assert told in condition(failed, "Synchronized")
            assert network.pod.run("nft", "list", "ruleset") == rules
            assert "sync" not in remote.calls
            assert network.picture() == before
            assert (await node.get("other"))["status"]["phase"] == "Running"
            assert not {"kill", "shutdown"} & set(other.calls)
