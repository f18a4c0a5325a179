"""Device plugins against a kubelet that is played over its real sockets."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kvnode.agent.devices import plugin as plugins
from kvnode.agent.devices import plugins as manager
from kvnode.agent.devices.offer import Host, Kind, SharedDevice, permissions
from kvnode.agent.devices.plugin import Plugin
from kvnode.agent.devices.plugins import Plugins
from kvnode.rpc.errors import RpcError
from kvnode.spec.config import ClusterConfig
from tests.agent.kubelet import Kubelet, Watch
from tests.agent.machinery import Machine
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
        plugin = Plugin(SharedDevice(KIND, device.parent, 3), kubelet.folder)
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
async def test_a_kubelet_that_has_let_go_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its socket nor the plugin's has changed, and yet nobody watches."""
    monkeypatch.setattr(plugins, "UNWATCHED", 1.0)
    async with node() as (kubelet, _, _):
        await kubelet.start()
        watch = Watch(await kubelet.until(RESOURCE))
        assert len(await watch.next()) == 3
        kubelet.registered.clear()
        await asyncio.sleep(2.5)
        assert not kubelet.registered
        await watch.close()
        again = Watch(await kubelet.until(RESOURCE))
        assert len(await again.next()) == 3
        await again.close()


@real_time
async def test_a_socket_that_is_taken_away_is_made_again() -> None:
    async with node() as (kubelet, _, _):
        await kubelet.start()
        watch = Watch(await kubelet.until(RESOURCE))
        assert len(await watch.next()) == 3
        kubelet.registered.clear()
        (kubelet.folder / "kubevirt-kvm.sock").unlink()
        assert await watch.next() == []
        await watch.close()
        again = Watch(await kubelet.until(RESOURCE))
        assert len(await again.next()) == 3
        await again.close()


@real_time
async def test_the_end_leaves_no_devices_and_no_socket() -> None:
    with tempfile.TemporaryDirectory(prefix="kv") as name:
        kubelet = Kubelet(Path(name) / "plugins")
        await kubelet.start()
        all_of_them = Plugins(kubelet.folder, Host(Path(name), Path(name), count=2), kinds=[KIND])
        async with background(all_of_them.run()):
            watch = Watch(await kubelet.until(RESOURCE))
            assert {health for _, health in await watch.next()} == {"Unhealthy"}
            await until(lambda: all_of_them.initialised)
        assert await watch.next() == []
        assert [path.name for path in kubelet.folder.iterdir()] == ["kubelet.sock"]
        assert not all_of_them.permitted
        await watch.close()
        await kubelet.stop()


GPU = "nvidia.com/TU104GL"


def permitted(*devices: dict[str, object]) -> ClusterConfig:
    return ClusterConfig.from_mapping({"permittedHostDevices": {"pciHostDevices": list(devices)}})


PERMITTED = permitted({"pciVendorSelector": "10DE:1EB8", "resourceName": GPU})


@asynccontextmanager
async def host() -> AsyncIterator[tuple[Kubelet, Machine, Plugins]]:
    """A kubelet, a machine, and the plugins for what the configuration permits."""
    with tempfile.TemporaryDirectory(prefix="kv") as name:
        machine = Machine(Path(name))
        kubelet = Kubelet(Path(name) / "plugins")
        await kubelet.start()
        offered = Plugins(kubelet.folder, machine.host, kinds=[])
        async with background(offered.run()):
            try:
                yield kubelet, machine, offered
            finally:
                await kubelet.stop()


@real_time
async def test_host_devices_come_and_go_with_the_configuration() -> None:
    async with host() as (kubelet, machine, offered):
        machine.pci("0000:65:00.0", "10DE:1EB8", "45", numa_node="1")
        offered.configure(PERMITTED)
        socket = await kubelet.until(GPU)
        watch = Watch(socket)
        assert await watch.next() == [("45", "Healthy")]
        assert watch.numa_nodes == {"45": 1}
        (machine.devices / "vfio/45").unlink()
        assert await watch.next() == [("45", "Unhealthy")]
        with pytest.raises(RpcError, match=r"0000:65:00.0: /dev/vfio/45 is gone"):
            await kubelet.allocate(socket, ["45"])
        (machine.devices / "vfio/45").touch()
        assert await watch.next() == [("45", "Healthy")]
        # One more is handed to VFIO: kubelet keeps its connection.
        machine.pci("0000:66:00.0", "10DE:1EB8", "46")
        offered.configure(PERMITTED)
        assert await watch.next() == [("45", "Healthy"), ("46", "Healthy")]
        offered.configure(ClusterConfig())
        assert await watch.next() == []
        await until(lambda: not socket.exists())
        assert GPU not in offered.permitted
        await watch.close()


@real_time
async def test_devices_that_were_plugged_in_later_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "SCAN", 0.05)
    async with host() as (kubelet, machine, offered):
        offered.configure(PERMITTED)
        await until(lambda: "devices.kubevirt.io/sev" in offered.permitted)
        assert GPU not in offered.permitted
        machine.pci("0000:65:00.0", "10DE:1EB8", "45")
        watch = Watch(await kubelet.until(GPU))
        assert await watch.next() == [("45", "Healthy")]
        await watch.close()


@real_time
async def test_a_configuration_that_cannot_be_read_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with host() as (kubelet, machine, offered):
        machine.pci("0000:65:00.0", "10DE:1EB8", "45")
        offered.configure(PERMITTED)
        await kubelet.until(GPU)
        offered.configure(permitted({"pciVendorSelector": "10DE:1EB8", "resourceName": 5}))
        await until(lambda: "pciHostDevices[0].resourceName" in caplog.text)
        assert GPU in offered.permitted
        # The node's VMs do not depend on it.
        assert offered.initialised


@real_time
async def test_gates_bring_devices() -> None:
    async with host() as (kubelet, machine, offered):
        (machine.devices / "sev").touch()
        gates = {"featureGates": ["VSOCK"]}
        offered.configure(ClusterConfig.from_mapping({"developerConfiguration": gates}))
        for resource, health in {"vhost-vsock": "Unhealthy", "sev": "Healthy"}.items():
            watch = Watch(await kubelet.until(f"devices.kubevirt.io/{resource}"))
            assert await watch.next() == [(f"{resource}{number}", health) for number in range(2)]
            await watch.close()
        offered.configure(ClusterConfig())
        await until(lambda: "devices.kubevirt.io/vhost-vsock" not in offered.permitted)


@pytest.mark.parametrize("loads", [False, True])
def test_a_device_is_opened_where_that_loads_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loads: bool
) -> None:
    device = tmp_path / "vhost-net"
    device.touch()
    opened = []
    open_really = os.open

    def spied(path: Path, flags: int) -> int:
        opened.append(path)
        return open_really(path, flags)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", spied)
        SharedDevice(Kind("vhost-net", "/dev/vhost-net", loads_module=loads), tmp_path, 1).prepare()
    assert opened == [device] * loads
    device.unlink()
    SharedDevice(Kind("vhost-net", "/dev/vhost-net", loads_module=loads), tmp_path, 1).prepare()


def test_permissions_follow_the_version_of_cgroups(tmp_path: Path) -> None:
    assert permissions(tmp_path) == "rw"
    (tmp_path / "cgroup.controllers").touch()
    assert permissions(tmp_path) == "rwm"
