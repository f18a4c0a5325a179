"""Clients that mean no good, at a launcher whose guest runs: an answer each, and nothing is left of them."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kvnode.rpc.cmd import CmdClient
from kvnode.rpc.errors import RpcError
from tests.conftest import Guest
from tests.launcher.agent import FakeAgent
from tests.launcher.pod.driving import drive, ended, knows_guest, start
from tests.launcher.pod.pod import NAME, NAMESPACE, OPTIONS, Pod, launcher_pod, pod_vmi
from tests.launcher.pod.test_steady import Holdings, settled

pytestmark = pytest.mark.integration

DOMAIN = f"{NAMESPACE}_{NAME}"
#: What begins an HTTP/2 connection.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ABOUT_VMI = (
    *("SyncVirtualMachine", "PauseVirtualMachine", "UnpauseVirtualMachine", "ShutdownVirtualMachine"),
    *("KillVirtualMachine", "DeleteVirtualMachine", "ResetVirtualMachine", "SoftRebootVirtualMachine"),
    *("SyncVirtualMachineCPUs", "SyncVirtualMachineMemory", "HotplugHostDevices"),
)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def garbage() -> Iterator[bytes]:
    """Bytes of no protocol, frames that make no sense, and frames that never end."""
    chance = random.Random(5)  # noqa: S311 - the same each time
    for _ in range(50):
        yield chance.randbytes(chance.randrange(1, 5000))
        odd = frame(
            chance.randrange(12),
            chance.randrange(256),
            chance.randrange(5),
            chance.randbytes(chance.randrange(60)),
        )
        yield PREFACE + frame(4, 0, 0, b"") + odd
        yield PREFACE + frame(4, 0, 0, b"") + b"\0\xff\xff\0\0"


def shout(path: Path, held: ExitStack) -> None:
    """Send garbage; each third connection stays open, and nobody reads what comes back."""
    for number, data in enumerate(garbage()):
        connection = socket.socket(socket.AF_UNIX)
        if number % 3 == 2:
            held.enter_context(connection)
        connection.settimeout(10)
        connection.connect(str(path))
        try:
            connection.sendall(data)
        except OSError:
            continue  # hung up on
        finally:
            if number % 3 != 2:
                connection.close()


async def refused(client: CmdClient, rpc: str, vmi: bytes, words: str) -> None:
    """A command is refused in these words."""
    with pytest.raises(RpcError, match=words):
        await client.vmi_command(rpc, vmi, OPTIONS)


async def abuse_exec(client: CmdClient) -> None:
    """Commands that cannot be run, do not end, or are of another guest."""
    for domain, command, arguments, seconds in (
        ("other_vm", "/bin/echo", ["a"], 5),
        (DOMAIN, "", [], 5),
        (DOMAIN, "/no/such", [], 5),
        (DOMAIN, "x" * 100_000, [], 5),
        (DOMAIN, "/bin/sleep", ["60"], 1),
    ):
        with pytest.raises(RpcError) as caught:
            await client.execute(domain, command, arguments, seconds)
        assert caught.value.code != "DEADLINE_EXCEEDED"
    assert await client.execute(DOMAIN, "/bin/echo", ['"};\\ $x é'], 20) == (0, '"};\\ $x é\n')
    hanging = [client.execute(DOMAIN, "/bin/sleep", ["60"], 2) for _ in range(40)]
    running = asyncio.gather(*hanging, return_exceptions=True)
    await client.domain()
    assert all(isinstance(end, RpcError) for end in await running)


async def other_uid(client: CmdClient, pod: Pod) -> None:
    """Whatever is asked of this launcher for another VMI is refused."""
    other = json.loads(pod.vmi_json)
    other["metadata"]["uid"] = "other"
    for rpc in ABOUT_VMI:
        await refused(client, rpc, json.dumps(other).encode(), "UID")


async def many_syncs(client: CmdClient, pod: Pod) -> None:
    """Each is done or told that others wait; one at least is done."""
    syncs = (client.sync(pod.vmi_json, OPTIONS) for _ in range(100))
    answers = await asyncio.gather(*syncs, return_exceptions=True)
    assert None in answers
    assert all(one is None or "still waiting for their turn" in str(one) for one in answers)


def test_hostile_clients(guest: Guest, libvirt_cache: Path) -> None:
    with launcher_pod(guest, libvirt_cache) as pod, ExitStack() as held:
        pod.vmi = pod_vmi()

        async def scenario(agent: FakeAgent) -> None:
            await start(pod, agent)
            await agent.until(knows_guest, "that the guest's agent answers", 120)
            pids = pod.pids()
            async with agent.commands(patient=True) as client:
                await abuse_exec(client)  # what the first ones need is kept
                before = Holdings.of(pids["launcher"])
                await asyncio.to_thread(shout, pod.socket, held)
                await client.ping()
                await client.sync(pod.vmi_json, OPTIONS)
                await other_uid(client, pod)
                await many_syncs(client, pod)
                await abuse_exec(client)
                held.close()
                after = await settled(pids["launcher"], before)
                assert after.descriptors <= before.descriptors
                assert after.threads <= before.threads + 4, "libvirt's calls have four"
                assert after.resident <= before.resident + (16 << 20)
                assert pod.pids() == pids

                await client.vmi_command("KillVirtualMachine", pod.vmi_json)
                await client.vmi_command("DeleteVirtualMachine", pod.vmi_json)
                await refused(client, "SyncVirtualMachine", pod.vmi_json, "the domain was deleted")
            assert await ended(pod) == 0
            pod.assert_nothing_left(pids)
            assert "Traceback" not in pod.log

        drive(pod, scenario, obedient=False)
