"""The manager behind its command server, with real libvirt, QEMU and guest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kvnode.net import names
from kvnode.rpc.cmd import CmdClient
from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions, VMStatsRequest
from kvnode.rpc.errors import RpcError
from kvnode.rpc.memory import get_memory_report
from tests.launcher.agent import CONNECT_SECONDS, PatientClient
from tests.launcher.manager.pod import Pod, as_json, vmi
from tests.standalone.helpers import BOOT_SECONDS, wait_for_text

pytestmark = pytest.mark.integration
OPTIONS = VirtualMachineOptions(MemBalloonStatsPeriod=10)


def run(pod: Pod, body: Callable[[CmdClient], Awaitable[None]]) -> None:
    """Run ``await body(client)`` against the pod; its log is shown when that fails."""

    async def whole() -> None:
        client = await PatientClient.open(pod.socket, CONNECT_SECONDS)
        try:
            await body(client)
        finally:
            await client.close()

    try:
        asyncio.run(whole())
    except BaseException:
        print(pod.log())
        raise


async def domain(client: CmdClient) -> dict[str, Any]:
    text = await client.domain()
    assert text is not None
    made: dict[str, Any] = json.loads(text)
    return made


async def state(client: CmdClient) -> tuple[str, str]:
    status = (await domain(client))["Status"]
    return status["Status"], status["Reason"]


async def until(condition: Callable[[], Awaitable[bool]], what: str, seconds: float = BOOT_SECONDS) -> None:
    """Wait for a condition."""
    try:
        async with asyncio.timeout(seconds):
            while not await condition():
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"not within {seconds:g} s: {what}") from None


async def refusal(call: Awaitable[object]) -> str:
    with pytest.raises(RpcError) as caught:
        await call
    return caught.value.message


async def agent_answers(client: CmdClient) -> bool:
    try:
        await client.guest_ping("default_vm", 5)
    except RpcError:
        return False
    return True


def test_a_life(pod: Pod) -> None:
    """From nothing to nothing, as an agent leads a VM through it."""
    one = vmi()

    async def body(client: CmdClient) -> None:
        assert await client.domain() is None
        assert "no guest is running" in await refusal(client.domain_stats())
        text = as_json(one)
        await asyncio.gather(client.sync(text, OPTIONS), client.sync(text, OPTIONS))
        assert await state(client) == ("Running", "Unknown")
        running = as_json({**one, "status": {"phase": "Running"}})
        await client.sync(running, OPTIONS)
        spec = (await domain(client))["Spec"]
        assert spec["Metadata"]["KubeVirt"]["UID"] == one["metadata"]["uid"]
        assert spec["Metadata"]["KubeVirt"]["GracePeriod"]["DeletionGracePeriodSeconds"] == 30
        ports = [c for c in spec["Devices"]["Controllers"] if c["Model"] == "pcie-root-port"]
        assert len(ports) >= 8
        assert len(spec["Devices"]["Interfaces"]) == 1, "no interface is left that only kept a port free"

        await client.vmi_command("PauseVirtualMachine", running)
        await client.sync(running, OPTIONS)
        assert await state(client) == ("Paused", "User"), "who paused it resumes it"
        await client.vmi_command("UnpauseVirtualMachine", running)
        assert (await state(client))[0] == "Running"

        stats = json.loads(await client.domain_stats() or "")
        assert stats["Vcpu"][0]["State"] == 1
        assert stats["Net"][0]["RxBytesSet"] is False or stats["Net"][0]["Alias"] == "default"
        assert (await client.qemu_version()).startswith("QEMU ")
        assert await client.dirty_rate() >= 0
        report = await get_memory_report(client.channel)
        assert {"qemu", "virtlogd", "virtqemud", "launcher-monitor"} <= {
            p["role"] for p in report["processes"]
        }
        assert report["guest_size"] == 128 << 20

        await until(lambda: agent_answers(client), "the guest's agent answers")
        assert await client.execute("default_vm", "/bin/busybox", ["echo", 'a "b"'], 60) == (0, 'a "b"\n')
        assert await client.execute("default_vm", "/bin/busybox", ["false"], 60) == (1, "")
        told = await client.vm_stats(VMStatsRequest(guestGetOsInfo={}))
        assert "kernel-release" in told.guestGetOsInfo.message
        await client.freeze(running, 60)
        await client.vmi_command("UnfreezeVirtualMachine", running)

        wait_for_text(pod.serial_log, "kvnode-guest: up")
        await client.vmi_command("ShutdownVirtualMachine", running)
        await until(lambda: is_off(client), "the guest hears the power button")
        assert await state(client) == ("Shutoff", "Shutdown")
        assert "power button pressed" in pod.serial_log.read_text(errors="replace")
        assert (await domain(client))["Spec"]["Metadata"]["KubeVirt"]["GracePeriod"]["DeletionTimestamp"]

        await client.sync(running, OPTIONS)
        assert (await state(client))[0] == "Shutoff", "one that ended is not started again"
        await client.vmi_command("DeleteVirtualMachine", running)
        assert await client.domain() is None
        assert "was deleted" in await refusal(client.sync(text, OPTIONS))
        for rpc in ("DeleteVirtualMachine", "KillVirtualMachine", "ShutdownVirtualMachine"):
            await client.vmi_command(rpc, running)

    async def is_off(client: CmdClient) -> bool:
        return (await state(client))[0] == "Shutoff"

    run(pod, body)


def test_a_guest_is_reset_and_rebooted(pod: Pod) -> None:
    """By its button, by its agent, and by ACPI where no agent is known of; QEMU stays."""
    one = vmi()
    running = {**one, "status": {"phase": "Running"}}
    connected = {"phase": "Running", "conditions": [{"type": "AgentConnected", "status": "True"}]}

    async def body(client: CmdClient) -> None:
        async def boots(times: int) -> None:
            def count() -> int:
                return pod.serial_log.read_text(errors="replace").count("kvnode-guest: up")

            async def booted() -> bool:
                return count() == times

            await until(booted, f"the guest's boot number {times}")
            assert (await state(client))[0] == "Running"

        await client.sync(as_json(one), OPTIONS)
        await boots(1)
        before = await qemu(client)
        await client.vmi_command("ResetVirtualMachine", as_json(running))
        await boots(2)
        await until(lambda: agent_answers(client), "the guest's agent answers")
        await client.vmi_command("SoftRebootVirtualMachine", as_json({**one, "status": connected}))
        await boots(3)
        assert "power button pressed" not in pod.serial_log.read_text(errors="replace")
        await client.vmi_command("SoftRebootVirtualMachine", as_json(running))
        await boots(4)
        assert "power button pressed" in pod.serial_log.read_text(errors="replace")
        assert await qemu(client) == before

    async def qemu(client: CmdClient) -> int:
        processes = (await get_memory_report(client.channel))["processes"]
        return next(int(process["pid"]) for process in processes if process["role"] == "qemu")

    run(pod, body)


def test_devices_of_a_running_guest(pod: Pod) -> None:
    """Disks in and out, a medium in a drive, CPUs, memory; a picture and a dump."""
    one = vmi()
    guest, spec, status = one["spec"]["domain"], one["spec"], one["status"]
    guest["cpu"] = {"cores": 1, "sockets": 1, "threads": 1, "maxSockets": 2, "model": "host-model"}
    guest["memory"] = {"guest": "256Mi", "maxGuest": "1Gi"}
    guest["devices"]["autoattachGraphicsDevice"] = True
    guest["devices"]["disks"] = [{"name": "Drive", "cdrom": {"bus": "sata"}}]
    status["memory"] = {"guestAtBoot": "256Mi"}
    plugged = pod.path("/run/kubevirt/hotplug-disks")

    def volume(name: str) -> None:
        claim = {"claimName": name, "hotpluggable": True}
        spec.setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": claim})
        info = {"capacity": {"storage": "8Mi"}, "requests": {"storage": "8Mi"}, "filesystemOverhead": "0"}
        entry = {"name": name, "target": "", "hotplugVolume": {}, "persistentVolumeClaimInfo": info}
        status.setdefault("volumeStatus", []).append(entry)

    async def disks(client: CmdClient) -> dict[str, str]:
        made = (await domain(client))["Spec"]["Devices"]["Disks"]
        return {disk["Alias"]["Name"]: disk["Source"]["File"].rpartition("/")[2] for disk in made}

    async def body(client: CmdClient) -> None:
        await client.sync(as_json(one), OPTIONS)
        assert await disks(client) == {"Drive": ""}
        status["phase"] = "Running"
        volume("Extra")
        guest["devices"]["disks"].append({"name": "Extra", "disk": {"bus": "scsi"}})
        await client.sync(as_json(one), OPTIONS)
        assert await disks(client) == {"Drive": ""}, "its file is not there yet"
        for name in ("Extra", "Drive"):
            (plugged / f"{name}.img").write_bytes(bytes(4 << 20))
        volume("Drive")
        await client.sync(as_json(one), OPTIONS)
        assert await disks(client) == {"Drive": "Drive.img", "Extra": "Extra.img"}
        assert (plugged / "Extra.img").stat().st_size == 8 << 20, "it grew to its claim"
        blocks = json.loads(await client.domain_stats() or "")["Block"]
        assert ("sdb", "Extra", 8 << 20) in [(b["Name"], b["Alias"], b["Capacity"]) for b in blocks]

        wait_for_text(pod.serial_log, "kvnode-guest: up")
        spec["volumes"].clear()
        status["volumeStatus"].clear()
        del guest["devices"]["disks"][1:]

        async def gone() -> bool:
            await client.sync(as_json(one), OPTIONS)
            return await disks(client) == {"Drive": ""}

        await until(gone, "the guest lets go of its disk")
        guest["cpu"]["sockets"] = 2
        await client.vmi_command("SyncVirtualMachineCPUs", as_json(one))
        vcpus = (await domain(client))["Spec"]["VCPUs"]["VCPU"]
        assert [vcpu["Enabled"] for vcpu in vcpus] == ["yes", "yes"]
        await memory(client)
        picture = await client.screenshot(as_json(one))
        assert (picture.mime, picture.data[1:4]) == ("image/png", b"PNG")
        await client.memory_dump(as_json(one), "/run/kubevirt/a.memory.dump")
        await until(lambda: dumped(client), "the memory is dumped")
        assert pod.path("/run/kubevirt/a.memory.dump").stat().st_size > 256 << 20

    async def memory(client: CmdClient) -> None:
        guest["memory"]["guest"] = "512Mi"
        await client.vmi_command("SyncVirtualMachineMemory", as_json(one))
        guest["memory"]["guest"] = "320Mi"
        await client.vmi_command("SyncVirtualMachineMemory", as_json(one))
        device = (await domain(client))["Spec"]["Devices"]["Memory"]
        requested = device["Target"]["Requested"]
        assert (requested["Value"], requested["Unit"]) == (64 << 10, "KiB")
        await client.sync(as_json(one), OPTIONS)

    async def dumped(client: CmdClient) -> bool:
        section = (await domain(client))["Spec"]["Metadata"]["KubeVirt"]["MemoryDump"]
        assert section is None or not section["FailureReason"]
        return bool(section and section["Completed"])

    run(pod, body)


def test_hostile_clients(pod: Pod) -> None:
    """Garbage, another's VMI, and clients that go away: an answer each, and the guest is started once."""
    one = vmi(startStrategy="Paused")

    async def body(client: CmdClient) -> None:
        for json_text in (b"", b"{", b"\xff" * 1000, b"[]", b"null", b'{"metadata":{"name":"vm"}}'):
            assert await refusal(client.sync(json_text, OPTIONS))
        other = {**one, "metadata": {**one["metadata"], "uid": "another"}}
        for rpc in (
            "SyncVirtualMachine",
            "KillVirtualMachine",
            "DeleteVirtualMachine",
            "ResetVirtualMachine",
        ):
            assert "UID another" in await refusal(client.vmi_command(rpc, as_json(other)))
        broken = json.loads(as_json(one))
        broken["spec"]["domain"]["memory"]["guest"] = "lots"
        assert "spec.domain.memory.guest" in await refusal(client.sync(as_json(broken), OPTIONS))
        odd = json.loads(as_json(one))
        odd["spec"]["domain"]["machine"] = {"type": "pc-q35-none"}
        assert (await refusal(client.sync(as_json(odd), OPTIONS))).startswith("LibvirtError(Code=")
        hooked = json.loads(as_json(one))
        hooked["metadata"]["annotations"] = {"hooks.kubevirt.io/hookSidecars": '[{"image": "x"}]'}
        assert "hook sidecar" in await refusal(client.sync(as_json(hooked), OPTIONS))
        assert await client.domain() is None

        # Whoever asked first does not wait; the next finds its work done.
        impatient = await CmdClient.open(pod.socket, CONNECT_SECONDS)
        with pytest.raises(RpcError):
            await impatient.vmi_command("SyncVirtualMachine", as_json(one), OPTIONS, timeout=0.05)
        await impatient.close()
        flood = [client.sync(as_json(one), OPTIONS) for _ in range(40)]
        answers = await asyncio.gather(*flood, return_exceptions=True)
        refused = [answer for answer in answers if answer is not None]
        assert len(refused) < len(answers)
        assert all("still waiting" in str(answer) for answer in refused), refused
        assert await state(client) == ("Paused", "User")
        assert pod.log().count("started the guest") == 1
        await asyncio.gather(*(client.ping() for _ in range(500)))
        await client.vmi_command("KillVirtualMachine", as_json(one))
        assert await state(client) == ("Shutoff", "Destroyed")
        assert "Traceback" not in pod.log()

    run(pod, body)


def test_a_guest_on_the_pods_network(networked_pod: Pod) -> None:
    """As the agent leaves a pod: a tap on a bridge behind the pod's interface; the guest gets the binding's address."""
    pod = networked_pod
    link_up(pod, "eth0", "tap0")
    pod.ip("addr", "add", "10.244.0.5/24", "dev", "eth0")
    pod.ip("addr", "add", "10.0.2.1/24", "dev", "k6t-eth0")
    one = vmi(networks=[{"name": "default", "pod": {}}])
    one["spec"]["domain"]["devices"]["interfaces"] = [{"name": "default", "masquerade": {}}]
    options = VirtualMachineOptions(interfaceDomainAttachment={"default": "tap"})

    async def body(client: CmdClient) -> None:
        await client.sync(as_json(one), options)
        (interface,) = (await domain(client))["Spec"]["Devices"]["Interfaces"]
        assert (interface["Target"]["Device"], interface["MTU"]["Size"]) == ("tap0", "1400")
        wait_for_text(pod.serial_log, "10.0.2.2")
        stats = json.loads(await client.domain_stats() or "")["Net"]
        assert [(net["Name"], net["Alias"]) for net in stats] == [("tap0", "default")]
        one["status"]["phase"] = "Running"
        one["spec"]["domain"]["devices"]["interfaces"][0]["state"] = "down"
        await client.sync(as_json(one), options)
        (interface,) = (await domain(client))["Spec"]["Devices"]["Interfaces"]
        assert interface["LinkState"]["State"] == "down"
        await plug_and_unplug(client)

    async def plug_and_unplug(client: CmdClient) -> None:
        name = names.hashed("blue")
        link_up(pod, name, f"tap{name[3:]}")
        pod.path(f"/run/kubevirt-private/vif-cache-{name}.json").write_text('{"IPAMDisabled": true}')
        blue = {"name": "blue", "bridge": {}, "macAddress": "02:00:00:00:00:b1"}
        one["spec"]["networks"].append({"name": "blue", "multus": {"networkName": "blue"}})
        one["spec"]["domain"]["devices"]["interfaces"].append(blue)
        options.interfaceDomainAttachment["blue"] = "tap"
        await client.sync(as_json(one), options)
        assert await interfaces(client) == ["tap0"], "multus has not brought it yet"
        one["status"]["interfaces"] = [{"name": "blue", "infoSource": "domain, multus-status"}]
        await client.sync(as_json(one), options)
        assert await interfaces(client) == ["tap0", f"tap{name[3:]}"]
        wait_for_text(pod.serial_log, "kvnode-guest: up")
        blue["state"] = "absent"

        async def gone() -> bool:
            await client.sync(as_json(one), options)
            return await interfaces(client) == ["tap0"]

        await until(gone, "the guest lets go of its interface")

    async def interfaces(client: CmdClient) -> list[str]:
        return [
            entry["Target"]["Device"] for entry in (await domain(client))["Spec"]["Devices"]["Interfaces"]
        ]

    run(pod, body)


def link_up(pod: Pod, name: str, tap: str) -> None:
    """What an agent makes of a pod's interface: a tap on a bridge beside it."""
    bridge = names.bridge(name)
    for command in (
        f"link add {name} type veth peer name {name[:8]}-peer",
        f"link set {name} mtu 1400 up",
        f"link add {bridge} type bridge",
        f"tuntap add {tap} mode tap",
        f"link set {tap} master {bridge} up",
        f"link set {bridge} up",
    ):
        pod.ip(*command.split())
