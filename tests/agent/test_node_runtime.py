"""All that is done to a launcher's processes and files, and undone."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kvnode.agent.errors import AgentError
from kvnode.agent.runtime import NodeRuntime
from kvnode.spec.config import ClusterConfig
from tests.agent.build import vmi
from tests.agent.test_devicerules import KVM, node
from tests.kube.loops import real_time

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes device nodes")

MIB = 1 << 20


@dataclass
class Launcher:
    """Where a launcher lives."""

    root: Path
    pid: int = field(default_factory=os.getpid)


@dataclass
class Recorder:
    """Keeps what was told."""

    told: list[tuple[str, str, str]] = field(default_factory=list)

    def event(self, _vmi: object, kind: str, reason: str, message: str) -> None:
        self.told.append((kind, reason, message))


@dataclass
class World:
    """A launcher, its node's devices and its control group, which is of plain files."""

    launcher: Launcher
    host: Path
    groups: Path
    recorder: Recorder

    def runtime(self) -> NodeRuntime:
        async def place(_vmi: object) -> Launcher:
            return self.launcher

        return NodeRuntime(
            place,
            ClusterConfig,
            "amd64",
            self.recorder,
            devices=self.host,
            control_groups=self.groups,
        )

    @property
    def group(self) -> Path:
        """That of devices."""
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        path = next(line.split(":")[2] for line in lines if ":devices:" in line)
        return self.groups / "devices" / path.strip("/")


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(Launcher(tmp_path / "root"), tmp_path / "host", tmp_path / "groups", Recorder())
    node(found.launcher.root / "dev", "kvm", KVM)
    node(found.host, "kvm", KVM)
    if ":devices:" not in Path("/proc/self/cgroup").read_text():
        pytest.skip("control groups are of version 2")
    found.group.mkdir(parents=True)
    (found.group / "devices.list").write_text("c 1:3 rwm\n")
    return found


def machine(*volumes: dict[str, Any], **domain: Any) -> dict[str, Any]:
    devices = {"autoattachPodInterface": False, **domain.pop("devices", {})}
    return vmi("Scheduled", spec={"domain": {"devices": devices, **domain}, "volumes": list(volumes)})


@real_time
async def test_devices_are_given_and_allowed_and_taken_back(world: World) -> None:
    runtime, found = world.runtime(), machine()
    await runtime.claim_devices(found)
    assert (world.launcher.root / "dev/kvm").stat().st_uid == 107
    assert (world.group / "devices.allow").read_text() == "c 10:232 rw"
    await runtime.release(found)
    assert (world.group / "devices.deny").read_text() == "c 10:232 rw"
    (world.group / "devices.deny").unlink()
    await runtime.release(found)
    assert not (world.group / "devices.deny").exists()


@real_time
async def test_disks_are_made_and_stay(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = world.runtime()
    disk = {"path": "/srv/my.img", "type": "DiskOrCreate", "capacity": "64Mi"}
    found = machine({"name": "data", "hostDisk": disk})
    image = world.launcher.root / "var/run/kubevirt-private/vmi-disks/data/my.img"
    image.parent.mkdir(parents=True)
    await runtime.claim_devices(found)
    await runtime.release(found)
    assert image.stat().st_size == 64 * MIB
    assert world.recorder.told == []
    image.unlink()

    class Free:
        f_bavail, f_frsize = 63 * MIB, 1

    monkeypatch.setattr(os, "fstatvfs", lambda _file: Free)
    await runtime.claim_devices(found)
    ((kind, reason, message),) = world.recorder.told
    assert (kind, reason) == ("Normal", "ToleratedSmallPV")
    assert "volume data" in message


@pytest.fixture
def virtqemud() -> Iterator[int]:
    """A process of that name, below this one."""
    program = "import ctypes; ctypes.CDLL(None).prctl(15, b'virtqemud', 0, 0, 0); print('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid
        process.kill()


@real_time
async def test_the_daemon_that_starts_qemu_may_lock_what_the_vm_needs(
    world: World, virtqemud: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = world.runtime()
    # Its parent, which is this process' too, is the launcher's monitor.
    world.launcher.pid = virtqemud
    monkeypatch.setattr("kvnode.agent.runtime.memlock_bytes", lambda *_: 3 * MIB)
    before = resource.prlimit(virtqemud, resource.RLIMIT_MEMLOCK)
    await runtime.adjust_resources(machine())
    assert resource.prlimit(virtqemud, resource.RLIMIT_MEMLOCK) == before
    await runtime.adjust_resources(machine(devices={"gpus": [{"name": "g"}]}))
    assert resource.prlimit(virtqemud, resource.RLIMIT_MEMLOCK) == (3 * MIB, 3 * MIB)


@real_time
async def test_what_the_kernel_refuses_is_one_clear_error(
    world: World, virtqemud: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    world.launcher.pid = virtqemud
    monkeypatch.setattr(resource, "prlimit", refuse)
    with pytest.raises(
        AgentError, match=rf"limit of locked memory of process {virtqemud} .*CAP_SYS_RESOURCE"
    ):
        await world.runtime().adjust_resources(
            machine(memory={"guest": "64Mi"}, devices={"gpus": [{"name": "g"}]})
        )


@real_time
async def test_vms_that_ask_for_nothing_are_left_alone(world: World) -> None:
    world.launcher.pid = 0  # whatever is looked for is not there
    await world.runtime().housekeeping(machine(cpu={"isolateEmulatorThread": True}), None)
    with pytest.raises(AgentError, match="process 0"):
        await world.runtime().housekeeping(
            machine(cpu={"isolateEmulatorThread": True, "dedicatedCpuPlacement": True}), None
        )
