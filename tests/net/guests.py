"""A demo guest in a launcher pod whose network the agent's code has set up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import kvnode
from kvnode.agent.domain import Domain
from kvnode.agent.options import virtual_machine_options
from kvnode.agent.ownership import claim_devices
from kvnode.net.cache import Cache, RecordedProgresses
from kvnode.net.podnetwork import ProcessNamespace, request_for
from kvnode.net.setup import setup
from kvnode.rpc.cmd_v1_pb2 import Topology, VirtualMachineOptions
from kvnode.spec.config import ClusterConfig
from tests.conftest import Guest
from tests.launcher.agent import FakeAgent
from tests.launcher.pod.driving import booted, drive, start
from tests.launcher.pod.pod import NAMESPACE, UID, Pod, launcher_pod
from tests.net.conftest import DEFAULT, Lab
from tests.net.console import Console
from tests.standalone.helpers import kernel_vmi

Interface = Mapping[str, Any]
EMULATED = ClusterConfig.from_mapping({"developerConfiguration": {"useEmulation": True}})


def vmi_with(
    interfaces: Sequence[Interface], networks: Sequence[Mapping[str, Any]] = (DEFAULT,)
) -> dict[str, Any]:
    """A VMI of the demo guest with these interfaces."""
    vmi = kernel_vmi("pod", networks=list(networks))
    vmi["metadata"] |= {"namespace": NAMESPACE, "uid": UID}
    vmi["spec"]["domain"]["devices"]["interfaces"] = [dict(one) for one in interfaces]
    return kvnode.apply_defaults(vmi, "amd64")


def options_for(vmi: dict[str, Any]) -> VirtualMachineOptions:
    """What the agent tells a launcher beside the VMI."""
    return virtual_machine_options(vmi, ClusterConfig(), Topology(), [])


class Running:
    """A guest that is up."""

    run: Callable[..., str]
    """Runs a command in it."""

    def __init__(self, pod: Pod, agent: FakeAgent) -> None:
        """To be made in the agent's loop, and used in a thread."""
        self.pod = pod
        self._agent = agent
        self._loop = asyncio.get_running_loop()

    def domain(self) -> Domain:
        """As the launcher told of it last."""
        return Domain([one.content for one in self._agent.heard if one.kind != "EVENT"][-1])

    def sync(self, vmi: dict[str, Any]) -> None:
        """Have the launcher make the VM what it is to be now."""
        asyncio.run_coroutine_threadsafe(self._sync(vmi), self._loop).result(120)

    async def _sync(self, vmi: dict[str, Any]) -> None:
        async with self._agent.commands() as client:
            await client.vmi_command("SyncVirtualMachine", json.dumps(vmi).encode(), options_for(vmi), 120)

    def counter(self, protocol: str, name: str) -> int:
        """A counter of the guest's kernel, of IPv4."""
        names, values = self.run(f"grep ^{protocol}: /proc/net/snmp").splitlines()
        return int(values.split()[names.split().index(name)])


def boot(
    lab: Lab,
    guest: Guest,
    cache: Path,
    vmi: dict[str, Any],
    check: Callable[[Running], None],
    *,
    user: int = 0,
) -> None:
    """Start a pod in the lab's, set its network up, boot the guest, and check; ``user`` is the launcher's."""
    flags = ["--run-as-nonroot"] if user else []
    with launcher_pod(guest, cache, *flags, network=lab.pod, user=user) as pod:
        pod.vmi = {**vmi, "status": {"runtimeUser": user}} if user else vmi
        lab.cache = Cache(lab.root.parent / "agent", UID, Path(f"/proc/{pod.first_process}/root"), user)
        lab.progresses = RecordedProgresses(lab.cache)

        async def scenario(agent: FakeAgent) -> None:
            if user:
                (pod.share / "domain-notify-pipe.sock").chmod(0o666)  # the real agent shares its group
            await asyncio.to_thread(_set_up, lab, pod, user)
            await start(pod, agent, options_for(vmi))
            await booted(pod)
            await asyncio.to_thread(_check, Running(pod, agent), check)

        drive(pod, scenario)


def _set_up(lab: Lab, pod: Pod, user: int) -> None:
    if user:
        claim_devices(dict(pod.vmi), Path(f"/proc/{pod.first_process}/root"), EMULATED, user)
    networks = pod.vmi["spec"]["networks"]
    request = request_for(pod.vmi, networks, pod.first_process, ClusterConfig(), "10.244.0.9")
    setup(replace(request, owner=user), lab.cache, lab.progresses, ProcessNamespace(pod.first_process))


def _check(running: Running, check: Callable[[Running], None]) -> None:
    with Console(running.pod.serial.with_name("virt-serial0")) as console:
        running.run = console.run
        check(running)
