"""The agent against a real API server; launchers are stood in for, controllers and kubelet played by the test."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kvnode.agent.watchdog import Watchdog
from kvnode.kube.client import PatchType
from kvnode.kube.errors import Invalid, NotFound
from kvnode.kube.resources import KUBEVIRTS, NODES, VIRTUAL_MACHINE_INSTANCES
from kvnode.rpc import cmd
from kvnode.rpc.errors import RpcError
from tests.agent.node import configuration, eventually, folder, node_of
from tests.cluster.cluster import Cluster
from tests.kube.loops import real_time

__all__ = ["configuration", "folder"]

pytestmark = pytest.mark.cluster


@real_time
async def test_a_vm_starts_runs_and_ends(control_plane: Cluster, namespace: str, folder: Path) -> None:
    async with node_of(control_plane, namespace, folder) as node, node.agent():
        _, launcher = await node.vmi()
        await launcher.start()
        await eventually(lambda: asyncio.sleep(0, "sync" in launcher.calls))
        assert launcher.asked[0]["metadata"]["uid"] == launcher.uid
        await launcher.become("Running", "Unknown")
        vmi = await node.until("Running")
        stamps = [one["phase"] for one in vmi["status"]["phaseTransitionTimestamps"]]
        # The agent may see the VMI before its phase has been set by `vmi`, and set it too.
        assert stamps in (["Running"], ["Scheduled", "Running"])
        assert (folder / "private/ghost-records" / launcher.uid).exists()

        await node.client.delete(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace)
        await eventually(lambda: asyncio.sleep(0, "kill" in launcher.calls))
        await launcher.become("Shutoff", "Destroyed")
        await eventually(lambda: asyncio.sleep(0, "delete" in launcher.calls))
        await node.until("Succeeded")
        await launcher.stop()

        async def clean() -> bool:
            return not (folder / "private/ghost-records" / launcher.uid).exists()

        await eventually(clean)

        async def told() -> bool:
            wanted = {(reason, "Normal") for reason in ("Created", "Started", "Stopped")}
            return wanted <= set(await node.events())

        assert await eventually(told)


@real_time
async def test_a_restart_leaves_a_running_vm_alone(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    async with node_of(control_plane, namespace, folder) as node:
        _, launcher = await node.vmi()
        await launcher.start()
        async with node.agent():
            await eventually(lambda: asyncio.sleep(0, "sync" in launcher.calls))
            await launcher.become("Running", "Unknown")
            await node.until("Running")
            before = await node.settled()
        count = len(launcher.calls)
        async with node.agent() as agent:
            await eventually(lambda: asyncio.sleep(0, len(launcher.calls) > count))
            assert agent.domains.get(f"{namespace}/testvmi") is not None
        after = await node.get()
        assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        assert set(launcher.calls) == {"sync"}


@real_time
async def test_a_restart_without_records_leaves_it_alone_too(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    async with node_of(control_plane, namespace, folder) as node:
        _, launcher = await node.vmi("Running")
        launcher.state = ("Running", "Unknown")
        await launcher.start()
        async with node.agent():
            await eventually(lambda: asyncio.sleep(0, "sync" in launcher.calls))
        assert (await node.get())["status"]["phase"] == "Running"


@real_time
async def test_a_launcher_that_died_while_no_agent_ran_fails_its_vm(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    async with node_of(control_plane, namespace, folder) as node:
        await node.vmi("Running")
        async with node.agent():
            await node.until("Failed")


@real_time
async def test_a_launcher_that_hangs_at_the_restart_is_waited_for(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    async with node_of(control_plane, namespace, folder) as node:
        _, launcher = await node.vmi("Running")
        launcher.state = ("Running", "Unknown")
        launcher.silent.clear()
        await launcher.start()
        async with node.agent() as agent:
            assert (await node.get())["status"]["phase"] == "Running"
            launcher.silent.set()
            ghost = next(iter(agent.ghosts))
            await agent.rounds.look_after(ghost)
            domain = agent.domains.get(ghost.key)
            assert domain is not None
            assert domain.status == "Running"


@real_time
async def test_a_failing_sync_is_told_and_tried_again(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    async with node_of(control_plane, namespace, folder) as node, node.agent():
        _, launcher = await node.vmi()
        launcher.failure = "played"
        await launcher.start()

        async def refused() -> Any:
            found = (await node.get())["status"].get("conditions") or ()
            return [one for one in found if one["type"] == "Synchronized" and "played" in one["message"]]

        assert (await eventually(refused))[0]["status"] == "False"
        launcher.failure = ""
        await launcher.become("Running", "Unknown")
        vmi = await node.until("Running")
        assert vmi["status"]["phase"] == "Running"


@real_time
async def test_a_launcher_can_lie_about_its_own_vm_only(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    async with node_of(control_plane, namespace, folder) as node, node.agent() as agent:
        _, launcher = await node.vmi()
        await launcher.start()
        await eventually(lambda: asyncio.sleep(0, "sync" in launcher.calls))
        await launcher.become("Running", "Unknown")
        lie = launcher.domain().replace(f'"{launcher.name}"', '"victim"')
        with pytest.raises(RpcError, match="may not speak of"):
            await launcher.tell("MODIFIED", lie)
        with pytest.raises(RpcError, match="its own VM only"):
            await launcher.tell_event(name="victim")
        with pytest.raises(RpcError, match="domainJSON"):
            await launcher.tell("MODIFIED", "[")
        assert agent.domains.get(f"{namespace}/victim") is None
        await launcher.tell_event()

        async def told() -> bool:
            return ("Played", "Normal") in await node.events()

        assert await eventually(told)


@real_time
async def test_vmis_of_missing_launchers_are_read_live_and_cleaned_up(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    """A VMI that went while no agent ran: its domain is ended and its record goes."""
    async with node_of(control_plane, namespace, folder) as node:
        vmi, launcher = await node.vmi("Running")
        launcher.state = ("Running", "Unknown")
        await launcher.start()
        async with node.agent():
            await eventually(lambda: asyncio.sleep(0, "sync" in launcher.calls))
        vmi = await node.get()
        vmi["metadata"]["finalizers"] = []
        await node.client.replace(VIRTUAL_MACHINE_INSTANCES, vmi)
        await node.client.delete(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace)
        with pytest.raises(NotFound):
            await node.get()
        async with node.agent():
            await eventually(lambda: asyncio.sleep(0, "kill" in launcher.calls))
            await launcher.become("Shutoff", "Destroyed")
            await eventually(lambda: asyncio.sleep(0, "delete" in launcher.calls))

            async def clean() -> bool:
                return not list((folder / "private/ghost-records").iterdir())

            assert await eventually(clean)


@real_time
async def test_the_node_becomes_schedulable_with_its_devices(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    async with node_of(control_plane, namespace, folder) as node:

        async def schedulable() -> str:
            found = await node.client.get(NODES, node.name)
            return str((found["metadata"].get("labels") or {}).get("kubevirt.io/schedulable", ""))

        async with node.agent():
            await eventually(lambda: is_true(schedulable))
            names = {f"devices.kubevirt.io/{name}" for name in ("kvm", "tun", "vhost-net", "sev")}
            await eventually(lambda: asyncio.sleep(0, set(node.kubelet.registered) == names))
        assert await schedulable() == "false"


@real_time
async def test_the_node_s_vms_are_measured_and_shown(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    async with node_of(control_plane, namespace, folder) as node, node.agent() as agent:
        _, launcher = await node.vmi()
        await launcher.start()
        await eventually(lambda: asyncio.sleep(0, "sync" in launcher.calls))
        await launcher.become("Running", "Unknown")
        await node.until("Running")
        async with aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{agent.web.port}"
            async with session.get(f"{url}/metrics") as answer:
                text = await answer.text()

            async def page_with_its_start() -> str:
                async with session.get(url) as answer:
                    page = await answer.text()
                return page if "Started" in page else ""

            page = await eventually(page_with_its_start)
        mine = [line for line in text.splitlines() if f'name="testvmi",namespace="{namespace}"' in line]
        assert any(line.startswith("kubevirt_vmi_cpu_usage_seconds_total{") for line in mine)
        assert f"{namespace}/testvmi" in page
        assert "Domain: Running" in page


@real_time
async def test_the_command_runs_until_it_is_told_to_end(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    async with node_of(control_plane, namespace, folder) as node:
        settings = node.settings
        arguments = [
            "--node-name",
            node.name,
            "--kubeconfig",
            str(control_plane.kubeconfig),
            "--host",
            "127.0.0.1",
        ]
        for option, path in (
            ("--pods", settings.pods),
            ("--private", settings.private),
            ("--capabilities", settings.capabilities),
            ("--device-plugins", settings.device_plugins),
        ):
            arguments += [option, str(path)]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kvnode.cli",
            "agent",
            *arguments,
            "--port",
            "0",
            stderr=asyncio.subprocess.PIPE,
        )

        async def schedulable() -> bool:
            found = await node.client.get(NODES, node.name)
            return (found["metadata"].get("labels") or {}).get("kubevirt.io/schedulable") == "true"

        try:
            await eventually(schedulable)
            process.terminate()
            _, told = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, told
        assert b"Traceback" not in told
        assert not await schedulable()


@real_time
async def test_a_launcher_that_hangs_too_long_fails_its_vm(
    control_plane: Cluster, namespace: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    async with node_of(control_plane, namespace, folder) as node, node.agent() as agent:
        agent.rounds.watchdog = Watchdog(lambda: now)
        _, launcher = await node.vmi()
        await launcher.start()
        await eventually(lambda: asyncio.sleep(0, "sync" in launcher.calls))
        await launcher.become("Running", "Unknown")
        await node.until("Running")
        ghost = next(iter(agent.ghosts))
        launcher.silent.clear()
        monkeypatch.setattr(cmd, "SHORT", 0.2)
        await agent.rounds.look_after(ghost)
        now = 29.0
        await agent.rounds.look_after(ghost)
        assert (await node.get())["status"]["phase"] == "Running"
        now = 31.0
        await agent.rounds.look_after(ghost)
        await node.until("Failed")
        assert launcher.socket.with_name("launcher-unresponsive").exists()
        launcher.silent.set()


@real_time
async def test_one_vmi_s_trouble_does_not_hold_up_another(
    control_plane: Cluster, namespace: str, folder: Path
) -> None:
    async with node_of(control_plane, namespace, folder) as node, node.agent():
        _, broken = await node.vmi(name="broken")
        broken.socket.symlink_to("/dev/null")
        _, launcher = await node.vmi()
        await launcher.start()
        await eventually(lambda: asyncio.sleep(0, "sync" in launcher.calls))
        assert (await node.get("broken"))["status"]["phase"] == "Scheduled"
        broken.socket.unlink()


@real_time
async def test_the_configuration_is_followed(control_plane: Cluster, namespace: str, folder: Path) -> None:
    async with node_of(control_plane, namespace, folder) as node, node.agent() as agent:
        assert agent.config().use_emulation
        name = {"name": "kubevirt", "namespace": "default"}
        kubevirt = await node.client.get(KUBEVIRTS, **name)
        bad = {"spec": {"configuration": {"developerConfiguration": {"useEmulation": "?"}}}}
        for patch, expected in (
            (bad, True),
            ({"spec": {"configuration": {"developerConfiguration": {"useEmulation": False}}}}, False),
            ({"spec": kubevirt["spec"]}, True),
        ):
            try:
                await node.client.patch(KUBEVIRTS, "kubevirt", "default", patch, PatchType.MERGE)
            except Invalid:
                continue  # the server's own schema refuses it
            await eventually(
                lambda expected=expected: asyncio.sleep(0, agent.config().use_emulation is expected)
            )


async def is_true(ask: Callable[[], Awaitable[str]]) -> bool:
    return await ask() == "true"
