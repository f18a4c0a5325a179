"""A demo guest in a launcher pod whose network the agent's code has set up."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import kvnode
from kvnode.agent.options import virtual_machine_options
from kvnode.net.podnetwork import PodNetworks
from kvnode.rpc.cmd_v1_pb2 import Topology
from kvnode.spec.config import ClusterConfig
from tests.conftest import Guest
from tests.launcher.agent import FakeAgent
from tests.launcher.pod.driving import booted, drive, start
from tests.launcher.pod.pod import NAMESPACE, UID, Pod, launcher_pod
from tests.net.conftest import DEFAULT, Lab
from tests.net.console import Console
from tests.standalone.helpers import kernel_vmi

Interface = Mapping[str, Any]


def vmi_with(
    interfaces: Sequence[Interface], networks: Sequence[Mapping[str, Any]] = (DEFAULT,)
) -> dict[str, Any]:
    """A VMI of the demo guest with these interfaces."""
    vmi = kernel_vmi("pod", networks=list(networks))
    vmi["metadata"] |= {"namespace": NAMESPACE, "uid": UID}
    vmi["spec"]["domain"]["devices"]["interfaces"] = [dict(one) for one in interfaces]
    return kvnode.apply_defaults(vmi, "amd64")


class Running:
    """A guest that is up."""

    def __init__(self, pod: Pod, console: Console, networks: PodNetworks) -> None:
        """``networks`` is the agent's."""
        self.pod = pod
        self.networks = networks
        self.run = console.run

    def counter(self, protocol: str, name: str) -> int:
        """A counter of the guest's kernel, of IPv4."""
        names, values = self.run(f"grep ^{protocol}: /proc/net/snmp").splitlines()
        return int(values.split()[names.split().index(name)])


def boot(lab: Lab, guest: Guest, cache: Path, vmi: dict[str, Any], check: Callable[[Running], None]) -> None:
    """Start a pod in the lab's, set its network up, boot the guest, and check.

    The launcher is root, and so is the tap's owner.
    """
    private = lab.root.parent / "agent"
    networks = PodNetworks(private, owner=os.getuid())
    options = virtual_machine_options(vmi, ClusterConfig(), Topology(), [])
    with launcher_pod(guest, cache, network=lab.pod) as pod:
        pod.vmi = vmi

        async def scenario(agent: FakeAgent) -> None:
            wanted = vmi["spec"]["networks"]
            await asyncio.to_thread(networks.setup, vmi, wanted, pod.first_process, ClusterConfig())
            await start(pod, agent, options)
            await booted(pod)
            await asyncio.to_thread(_check, pod, networks, check)

        drive(pod, scenario)


def _check(pod: Pod, networks: PodNetworks, check: Callable[[Running], None]) -> None:
    with Console(pod.serial.with_name("virt-serial0")) as console:
        check(Running(pod, console, networks))
