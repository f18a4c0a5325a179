"""How fast a launcher answers, with real libvirt and QEMU: ``pytest bench/test_launcher.py`` (root).

What counts for a first Sync is the launcher's own share: libvirt, QEMU and programs such as qemu-img are taken out.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvnode.rpc.cmd import CmdClient
from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions
from kvnode.standalone.sandbox import Bind
from tests.conftest import Guest, guest  # noqa: F401 - a fixture
from tests.launcher.manager.pod import Pod, as_json, vmi
from tests.launcher.pod.pod import launcher_pod

#: Most seconds: the launcher's own share of a first Sync, a Sync that changes nothing, a ping; from its start
#: to a socket that can be used.
OWN, IDLE, PING, READY = 0.060, 0.005, 0.0004, 1.0

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("qemu-img") is None, reason="needs root, libvirt and QEMU"
)
OPTIONS = VirtualMachineOptions(MemBalloonStatsPeriod=10)

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture
def pod(guest: Guest) -> Iterator[Pod]:  # noqa: F811
    """A pod that writes down where the time goes."""
    where = "/run/kubevirt/container-disks/kernel-boot"
    binds = [
        Bind(str(guest.kernel), f"{where}/vmlinuz", True),
        Bind(str(guest.initrd), f"{where}/initrd.gz", True),
    ]
    made = Pod(binds, module="bench.launcher_pod")
    yield made
    made.close()


def times(pod: Pod) -> list[dict[str, float]]:
    """What each Sync took."""
    return [json.loads(line) for line in pod.path("/run/times.jsonl").read_text().splitlines()]


def own(spent: dict[str, float]) -> float:
    """The launcher's own share in seconds."""
    return spent["total"] - spent["libvirt"] - spent["programs"]


def test_first_and_idle_syncs(pod: Pod, benchmark: Any) -> None:
    """A VMI with a cloud-init and an empty disk is started; then nothing changes."""
    made = vmi()
    made["spec"]["volumes"] = [
        {"name": "seed", "cloudInitNoCloud": {"userData": "#!/bin/sh\n"}},
        {"name": "empty", "emptyDisk": {"capacity": "16Mi"}},
    ]
    made["spec"]["domain"]["devices"]["disks"] = [
        {"name": volume["name"], "disk": {"bus": "virtio"}} for volume in made["spec"]["volumes"]
    ]
    with asyncio.Runner() as runner:
        client = runner.run(CmdClient.open(pod.socket))
        runner.run(client.sync(as_json(made), OPTIONS))
        made["status"]["phase"] = "Running"
        text = as_json(made)
        benchmark.pedantic(
            lambda: runner.run(client.sync(text, OPTIONS)), rounds=50, iterations=1, warmup_rounds=2
        )
        runner.run(client.close())
    first, *idle = times(pod)
    benchmark.extra_info.update(first=first, own=own(first), idle=min(one["total"] for one in idle))
    print(f"\nfirst Sync: {first['total'] * 1000:.0f} ms, own {own(first) * 1000:.1f} ms; "
          f"idle: {min(one['total'] for one in idle) * 1000:.2f} ms")  # fmt: skip
    assert own(first) <= OWN
    assert benchmark.stats.stats.min <= IDLE


def test_pings(pod: Pod, tmp_path: Path) -> None:
    """One after the other, from another process, beside a server of gRPC's that does nothing else.

    On a machine that others use the bare server may miss the aim as well; then ours may take a tenth longer.
    """
    # The newer event engine costs a client more than it gains here.
    environment = {**os.environ, "GRPC_EXPERIMENTS": "-event_engine_client,-event_engine_listener"}
    bare = subprocess.Popen([sys.executable, "-m", "bench.bare_server", str(tmp_path / "s")])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bench.ping_client", str(pod.socket), str(tmp_path / "s")],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        bare.kill()
        bare.wait()
    ours, theirs = map(float, done.stdout.split())
    print(f"\nping: {ours * 1000:.3f} ms, a bare server {theirs * 1000:.3f} ms")
    assert ours <= max(PING, 1.1 * theirs)


def test_the_socket_is_ready(guest: Guest, tmp_path: Path) -> None:  # noqa: F811
    """From the launcher's start. The first pod fills libvirt's cache, as a node's first does."""
    took = []
    for _ in range(6):
        with launcher_pod(guest, tmp_path) as pod:
            while not pod.socket.exists():
                time.sleep(0.002)
            now = time.clock_gettime(time.CLOCK_BOOTTIME)
            fields = Path(f"/proc/{pod.pids()['launcher']}/stat").read_text().rpartition(")")[2].split()
            took.append(now - int(fields[19]) / os.sysconf("SC_CLK_TCK"))
    print(f"\nsocket ready: {', '.join(f'{seconds:.2f}' for seconds in took)} s after start")
    assert min(took[1:]) <= READY
