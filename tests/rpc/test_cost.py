"""What the protocols cost a launcher: what they import, and what a request leaves behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kvnode.rpc.cmd import CmdClient, bind_cmd
from kvnode.rpc.cmd_v1_pb2 import Response
from tests.rpc.helpers import run, serving

#: Bytes that 1500 requests on 60 connections may leave behind.
GROWTH = 2 * 2**20


def in_a_fresh_process(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_nothing_is_imported_that_the_protocols_do_not_use():
    loaded = set(
        in_a_fresh_process(
            "import kvnode.rpc.cmd, kvnode.rpc.notify, kvnode.rpc.server, kvnode.rpc.memory, sys; print(*sys.modules)"
        )
    )
    assert "grpc.aio" in loaded
    unwanted = {
        "kvnode.rpc.deviceplugin_v1beta1_pb2",
        "kvnode.memory",
        "kvnode.virt",
        "kvnode.spec",
        "kvnode._fast",
    }
    # (grpc itself looks for grpc_tools, which only developers have.)
    unwanted |= {"libvirt", "lxml", "click", "rich", "yaml", "psutil", "grpc_tools.protoc"}
    assert not loaded & unwanted


def test_the_domains_json_needs_neither_grpc_nor_libvirt():
    loaded = set(in_a_fresh_process("import kvnode.virt.domain_json, sys; print(*sys.modules)"))
    assert not loaded & {"grpc", "google.protobuf", "libvirt", "lxml", "asyncio"}


def test_programs_may_be_started_after_grpc_has_begun():
    assert in_a_fresh_process(
        "from kvnode.rpc.runtime import grpc; import os; print(os.environ['GRPC_ENABLE_FORK_SUPPORT'])"
    ) == ["0"]


def test_requests_and_connections_leave_nothing_behind(tmp_path):
    async def pong(request, context):
        return Response(success=True)

    async def body():
        async with serving(tmp_path / "s", *bind_cmd({"Ping": pong})):

            async def rounds(connections):
                for _ in range(connections):
                    client = await CmdClient.open(tmp_path / "s")
                    for _ in range(25):
                        await client.ping()
                    await client.close()
                return resident()

            await rounds(20)
            sizes = [await rounds(1)]
            # What is left behind is so each time; what this process's allocator sets aside, is not.
            for _ in range(3):
                sizes.append(await rounds(60))
                if sizes[-1] - sizes[-2] < GROWTH:
                    break
            return sizes, len(list(Path("/proc/self/fd").iterdir()))

    files = len(list(Path("/proc/self/fd").iterdir()))
    sizes, open_files = run(body())
    assert sizes[-1] - sizes[-2] < GROWTH, sizes
    assert open_files < files + 20


def resident():
    """Resident size of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS in /proc/self/status")
