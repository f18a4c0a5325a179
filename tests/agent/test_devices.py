"""Device plugins against a kubelet that is played over its real sockets."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kvnode.agent.devices import plugin as plugins
from kvnode.agent.devices.plugin import Kind, Plugin, Plugins, permissions
from tests.agent.kubelet import Kubelet, Watch
from tests.kube.loops import real_time, until
from tests.kube.support import background

KIND = Kind("kvm", "/dev/kvm")
RESOURCE = "devices.kubevirt.io/kvm"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, and do not wait long."""
    monkeypatch.setattr(plugins, "LOOK", 0.02)
    monkeypatch.setattr(plugins, "PAUSES", (0.02,))


@asynccontextmanager
async def node() -> AsyncIterator[tuple[Kubelet, Plugin, Path]]:
    """A kubelet, a plugin that runs, and the device."""
    with tempfile.TemporaryDirectory(prefix="kv") as name:
        device = Path(name) / "dev/kvm"
        device.parent.mkdir()
        device.touch()
        kubelet = Kubelet(Path(name) / "plugins")
        plugin = Plugin(KIND, kubelet.folder, device.parent, 3)
        async with background(plugin.run()):
            try:
                yield kubelet, plugin, device
            finally:
                await kubelet.stop()


@real_time
async def test_kubelet_learns_of_the_devices_and_their_health() -> None:
    async with node() as (kubelet, plugin, device):
        await kubelet.start()
        socket = await kubelet.until(RESOURCE)
        assert socket.name == "kubevirt-kvm.sock"
        assert kubelet.versions == {"v1beta1"}
        watch = Watch(socket)
        assert await watch.next() == [(f"kvm{number}", "Healthy") for number in range(3)]
        device.unlink()
        assert await watch.next() == [(f"kvm{number}", "Unhealthy") for number in range(3)]
        assert not plugin.is_healthy
        device.touch()
        assert {health for _, health in await watch.next()} == {"Healthy"}
        await watch.close()


@real_time
async def test_each_container_gets_the_device_once() -> None:
    async with node() as (kubelet, _, _):
        await kubelet.start()
        socket = await kubelet.until(RESOURCE)
        answers = await kubelet.allocate(socket, ["kvm0", "kvm1"], ["kvm2"])
        assert len(answers) == 2
        for answer in answers:
            (device,) = answer.devices
            assert (device.host_path, device.container_path) == ("/dev/kvm", "/dev/kvm")
            assert device.permissions == permissions()


@real_time
async def test_a_kubelet_that_comes_late_or_starts_anew_learns_of_them_again() -> None:
    async with node() as (kubelet, plugin, _):
        assert not plugin.initialised
        await kubelet.start()
        await kubelet.until(RESOURCE)
        await until(lambda: plugin.initialised)
        await kubelet.stop()
        await kubelet.start()
        socket = await kubelet.until(RESOURCE)
        watch = Watch(socket)
        assert len(await watch.next()) == 3
        await watch.close()


@real_time
async def test_the_end_leaves_no_devices_and_no_socket() -> None:
    with tempfile.TemporaryDirectory(prefix="kv") as name:
        kubelet = Kubelet(Path(name) / "plugins")
        await kubelet.start()
        all_of_them = Plugins(kubelet.folder, Path(name), 2, [KIND])
        async with background(all_of_them.run()):
            watch = Watch(await kubelet.until(RESOURCE))
            assert {health for _, health in await watch.next()} == {"Unhealthy"}
            await until(lambda: all_of_them.initialised)
        assert await watch.next() == []
        assert [path.name for path in kubelet.folder.iterdir()] == ["kubelet.sock"]
        await watch.close()
        await kubelet.stop()


def test_permissions_follow_the_version_of_cgroups(tmp_path: Path) -> None:
    assert permissions(tmp_path) == "rw"
    (tmp_path / "cgroup.controllers").touch()
    assert permissions(tmp_path) == "rwm"
