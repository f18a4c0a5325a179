"""Host devices that the configuration permits, found in a made sysfs and allocated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.agent.devices.offer import RefusedError, Unit, socket_name_of, variable_of
from kvnode.agent.devices.permitted import permitted_offers
from kvnode.agent.devices.sockets import SharedSocket
from kvnode.agent.devices.sysfs import mediated_devices, pci_devices, usb_devices
from kvnode.agent.devices.usb import UsbDevices
from kvnode.agent.devices.vfio import VfioDevices
from kvnode.api.errors import FieldError
from kvnode.spec.config import ClusterConfig
from tests.agent.machinery import Machine

KEYBOARD, MOUSE = "46d/c31c/4920", "46d/c077/7200"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def offers(machine: Machine, **permitted: list[Any]) -> dict[str, Any]:
    """Those of the host devices alone."""
    config = ClusterConfig.from_mapping({"permittedHostDevices": permitted})
    found = permitted_offers(config, machine.host)
    return {name: one for name, one in found.items() if isinstance(one, VfioDevices | UsbDevices)}


def pci(selector: str, resource: str, **more: Any) -> dict[str, Any]:
    return {"pciVendorSelector": selector, "resourceName": resource, **more}


def mdev(selector: str, resource: str, **more: Any) -> dict[str, Any]:
    return {"mdevNameSelector": selector, "resourceName": resource, **more}


def usb(resource: str, *selectors: tuple[str, str], **more: Any) -> dict[str, Any]:
    wanted = [{"vendor": vendor, "product": product} for vendor, product in selectors]
    return {"resourceName": resource, "selectors": wanted, **more}


def nodes(answer: Any) -> list[str]:
    assert all(one.host_path == one.container_path and one.permissions == "rwm" for one in answer.devices)
    return [one.host_path for one in answer.devices]


class TestPci:
    def test_devices_are_found_by_their_numbers(self, machine: Machine) -> None:
        machine.pci("0000:65:00.0", "10DE:1EB8", "45", numa_node="1")
        machine.pci("0000:66:00.0", "10DE:1EB8", "46", numa_node="-1")
        machine.pci("0000:67:00.0", "8086:10FB", "47")
        (found,) = offers(machine, pciHostDevices=[pci("10de:1Eb8", "nvidia.com/TU104GL")]).values()
        assert found.resource == "nvidia.com/TU104GL"
        assert found.units() == [Unit("45", True, 1), Unit("46", True)]

    def test_only_what_vfio_has_is_offered(self, machine: Machine) -> None:
        machine.pci("0000:01:00.0", "10DE:1EB8", "1", driver="nouveau")
        machine.pci("0000:02:00.0", "10DE:1EB8", "2", driver="")
        machine.pci("0000:03:00.0", "10DE:1EB8", "")
        (machine.sysfs / "bus/pci/devices/0000:04:00.0").symlink_to("../../../devices/gone")
        assert pci_devices(machine.sysfs) == []
        assert offers(machine, pciHostDevices=[pci("10DE:1EB8", "a/b")]) == {}

    def test_virtual_functions_with_a_vgpu_type_are_handed_out(self, machine: Machine) -> None:
        made = {"driver": "nvidia"}
        machine.pci("0000:01:00.0", "10DE:1EB8", "1", **made, nvidia__current_vgpu_type="557")
        machine.pci("0000:02:00.0", "10DE:1EB8", "2", **made, nvidia__current_vgpu_type="0")
        machine.pci("0000:03:00.0", "10DE:1EB8", "3", **made)
        physical = {"nvidia__current_vgpu_type": "557", "sriov_totalvfs": "16"}
        machine.pci("0000:04:00.0", "10DE:1EB8", "4", **made, **physical)
        assert [one.address for one in pci_devices(machine.sysfs)] == ["0000:01:00.0"]

    def test_a_container_gets_nodes_and_addresses(self, machine: Machine) -> None:
        folder = machine.pci("0000:65:00.0", "10DE:1EB8", "45")
        (folder / "vfio-dev/vfio3").mkdir(parents=True)
        machine.pci("0000:66:00.0", "10DE:1EB8", "46")
        (found,) = offers(machine, pciHostDevices=[pci("10DE:1EB8", "vendor.com/my-gpu")]).values()
        answer = found.allocate(["45", "46"])
        assert nodes(answer) == [
            *("/dev/vfio/vfio", "/dev/vfio/45", "/dev/vfio/devices/vfio3"),
            "/dev/vfio/46",
        ]
        assert dict(answer.envs) == {"PCI_RESOURCE_VENDOR_COM_MY-GPU": "0000:65:00.0,0000:66:00.0"}

    def test_what_is_gone_is_unhealthy_and_not_given(self, machine: Machine) -> None:
        machine.pci("0000:65:00.0", "10DE:1EB8", "45")
        (found,) = offers(machine, pciHostDevices=[pci("10DE:1EB8", "a.b/c")]).values()
        (machine.devices / "vfio/45").unlink()
        assert found.units() == [Unit("45", False)]
        with pytest.raises(RefusedError, match=r"0000:65:00.0: /dev/vfio/45 is gone"):
            found.allocate(["45"])
        with pytest.raises(RefusedError, match="group 9"):
            found.allocate(["9"])

    def test_other_providers_keep_their_resources(self, machine: Machine) -> None:
        machine.pci("0000:65:00.0", "10DE:1EB8", "45")
        assert offers(machine, pciHostDevices=[pci("10DE:1EB8", "a/b", externalResourceProvider=True)]) == {}
        assert list(
            offers(machine, pciHostDevices=[pci("10DE:1EB8", "a/b", externalResourceProvider=False)])
        ) == ["a/b"]

    def test_two_kinds_may_be_one_resource(self, machine: Machine) -> None:
        machine.pci("0000:65:00.0", "10DE:1EB8", "45")
        machine.pci("0000:66:00.0", "10DE:1EB9", "46")
        (found,) = offers(machine, pciHostDevices=[pci("10DE:1EB9", "a/b"), pci("10DE:1EB8", "a/b")]).values()
        assert [unit.id for unit in found.units()] == ["45", "46"]


class TestMediated:
    UUID = "53764d0e-85a0-42b4-af5c-2046b460b1dc"

    @pytest.mark.parametrize("selector", ["GRID T4-1Q", "GRID_T4-1Q"])
    def test_a_type_is_known_by_its_name(self, machine: Machine, selector: str) -> None:
        parent = machine.pci("0000:65:00.0", "10DE:1EB8", driver="nvidia", numa_node="0")
        machine.mdev(self.UUID, parent, "7", "GRID T4-1Q")
        (found,) = offers(machine, mediatedDevices=[mdev(selector, "nvidia.com/GRID_T4-1Q")]).values()
        assert found.units() == [Unit("7", True, 0)]
        answer = found.allocate(["7"])
        assert nodes(answer) == ["/dev/vfio/vfio", "/dev/vfio/7"]
        assert dict(answer.envs) == {"MDEV_PCI_RESOURCE_NVIDIA_COM_GRID_T4-1Q": self.UUID}

    def test_a_type_without_a_name_is_known_by_its_folder(self, machine: Machine) -> None:
        parent = machine.pci("0000:00:02.0", "8086:1912", driver="i915")
        machine.mdev(self.UUID, parent, "8", "i915-GVTg_V5_4", named=False)
        assert [one.kind for one in mediated_devices(machine.sysfs)] == ["i915-GVTg_V5_4"]
        assert list(offers(machine, mediatedDevices=[mdev("i915-GVTg_V5_4", "intel.com/gvt")])) == [
            "intel.com/gvt"
        ]
        external = mdev("i915-GVTg_V5_4", "intel.com/gvt", externalResourceProvider=True)
        assert offers(machine, mediatedDevices=[external]) == {}


class TestUsb:
    def test_a_set_has_a_device_for_each_selector(self, machine: Machine) -> None:
        machine.usb("usb1", KEYBOARD, 1, 1)  # a controller's own hub
        machine.usb("1-1", KEYBOARD, 1, 2)
        machine.usb("1-2", MOUSE, 1, 3)
        machine.usb("1-3", MOUSE, 1, 4)
        assert len(usb_devices(machine.sysfs)) == 3
        desk = usb("kubevirt.io/desk", ("046d", "c31c"), ("046d", "c077"))
        mice = usb("kubevirt.io/mouse", ("046d", "c077"))
        found = offers(machine, usb=[desk, mice])
        (one,) = found["kubevirt.io/desk"].units()
        assert one == Unit("kubevirt.io/desk-046d:c31c-01:02-046d:c077-01:03", True)
        # What a set has is in no other.
        (other,) = found["kubevirt.io/mouse"].units()
        assert other.id == "kubevirt.io/mouse-046d:c077-01:04"

    def test_no_device_is_in_a_set_twice(self, machine: Machine) -> None:
        machine.usb("1-1", MOUSE, 1, 2)
        pair = usb("kubevirt.io/pair", ("046d", "c077"), ("046d", "c077"))
        assert offers(machine, usb=[pair]) == {}
        machine.usb("1-2", MOUSE, 1, 3)
        assert len(offers(machine, usb=[pair])["kubevirt.io/pair"].units()) == 1

    @pytest.mark.skipif(os.geteuid() != 0, reason="files are given to others")
    def test_a_container_gets_nodes_that_qemu_may_open(self, machine: Machine) -> None:
        device = machine.usb("1-1", MOUSE, 1, 2)
        (found,) = offers(machine, usb=[usb("kubevirt.io/mouse", ("46d", "c077"))]).values()
        (unit,) = found.units()
        answer = found.allocate([unit.id])
        assert nodes(answer) == ["/dev/bus/usb/001/002"]
        assert dict(answer.envs) == {"USB_RESOURCE_KUBEVIRT_IO_MOUSE": "1:2"}
        assert (device.stat().st_uid, device.stat().st_gid) == (107, 107)
        device.unlink()
        assert not found.units()[0].healthy
        with pytest.raises(RefusedError, match="/dev/bus/usb/001/002"):
            found.allocate([unit.id])
        with pytest.raises(RefusedError, match="not plugged in"):
            found.allocate(["other"])

    def test_devices_that_tell_nonsense_are_passed_over(self, machine: Machine) -> None:
        machine.usb("1-1", "46d/c077", 1, 2)
        machine.usb("1-2", "x/y/z", 1, 3)
        folder = machine.sysfs / "devices/usb/1-3"
        machine.usb("1-3", MOUSE, 1, 4)
        (folder / "uevent").write_text("DEVNAME=../../etc/passwd\nPRODUCT=1/2/3\nBUSNUM=1\nDEVNUM=2\n")
        assert usb_devices(machine.sysfs) == []

    def test_other_providers_keep_their_resources(self, machine: Machine) -> None:
        machine.usb("1-1", MOUSE, 1, 2)
        mouse = ("046d", "c077")
        assert offers(machine, usb=[usb("a/b", mouse, externalResourceProvider=True)]) == {}
        assert offers(machine, usb=[usb("a/b")]) == {}


class TestDaemons:
    def offers(self, machine: Machine, **config: Any) -> dict[str, SharedSocket]:
        found = permitted_offers(ClusterConfig.from_mapping(config), machine.host)
        return {name: one for name, one in found.items() if isinstance(one, SharedSocket)}

    def socket(self, machine: Machine, path: str) -> Path:
        found = machine.host.root / path.lstrip("/")
        found.parent.mkdir(parents=True)
        os.mknod(found, 0o140600)
        return found

    def test_which_there_are(self, machine: Machine) -> None:
        assert self.offers(machine) == {}
        pr = "devices.kubevirt.io/pr-helper"
        gate = {"featureGates": ["PersistentReservation"]}
        assert list(self.offers(machine, developerConfiguration=gate)) == [pr]
        section = {"enabled": False}
        assert not self.offers(
            machine, developerConfiguration=gate, persistentReservationConfiguration=section
        )
        assert list(self.offers(machine, persistentReservationConfiguration={"enabled": True})) == [pr]

    @pytest.mark.skipif(os.geteuid() != 0, reason="files are given to others")
    def test_a_socket_is_given_to_qemu_and_its_folder_to_containers(self, machine: Machine) -> None:
        (found,) = self.offers(machine, persistentReservationConfiguration={"enabled": True}).values()
        names = ["pr-helper0", "pr-helper1"]
        assert found.units() == tuple(Unit(name, False) for name in names)
        socket = self.socket(machine, "/var/run/kubevirt/daemons/pr/pr-helper.sock")
        assert found.units() == tuple(Unit(name, True) for name in names)
        assert {path.stat().st_uid for path in (socket, socket.parent)} == {107}
        (mount,) = found.allocate(names[:1]).mounts
        assert (mount.host_path, mount.container_path) == ("/var/run/kubevirt/daemons/pr",) * 2
        assert not mount.read_only
        socket.unlink()
        socket.touch()
        assert not found.units()[0].healthy

    def test_tdx_has_as_many_guests_as_the_machine(self, machine: Machine) -> None:
        gate = {"featureGates": ["WorkloadEncryptionTDX"]}
        assert self.offers(machine, developerConfiguration=gate) == {}
        capacities = machine.host.root / "sys/fs/cgroup/misc.capacity"
        capacities.parent.mkdir(parents=True)
        for text in ("sev 100\n", "tdx 0\n", "tdx x\n", "tdx\n"):
            capacities.write_text(text)
            assert self.offers(machine, developerConfiguration=gate) == {}
        capacities.write_text("sev 100\ntdx 31\n")
        (found,) = self.offers(machine, developerConfiguration=gate).values()
        assert found.resource == "devices.kubevirt.io/tdx"
        capacities.write_text("tdx 99999999999\n")
        (several,) = self.offers(machine, developerConfiguration=gate).values()
        assert len(several.units()) == 10_000, "not more than kubelet can be told of"
        # Attestation is wanted, not needed.
        assert found.units() == tuple(Unit(f"tdx{number}", True) for number in range(31))
        enforced = {"tdx": {"attestation": {"enforced": True, "qgsSocketPath": "/run/q/s"}}}
        (found,) = self.offers(machine, developerConfiguration=gate, confidentialCompute=enforced).values()
        assert not found.units()[0].healthy
        socket = self.socket(machine, "/run/q/s")
        owner = socket.stat().st_uid
        assert found.units()[0].healthy
        assert socket.stat().st_uid == owner
        assert [mount.host_path for mount in found.allocate(["tdx0"]).mounts] == ["/run/q"]
        without = {"tdx": {"attestation": {"qgsSocketPath": ""}}}
        (found,) = self.offers(machine, developerConfiguration=gate, confidentialCompute=without).values()
        assert not found.allocate(["tdx0"]).mounts


@pytest.mark.parametrize(
    ("permitted", "path"),
    [
        ({"pciHostDevices": ["x"]}, r"pciHostDevices\[0\]"),
        ({"pciHostDevices": "x"}, "pciHostDevices"),
        ({"pciHostDevices": [pci("1:2", "")]}, r"pciHostDevices\[0\].resourceName"),
        ({"pciHostDevices": [pci("1:2", "devices.kubevirt.io/kvm")]}, r"pciHostDevices\[0\].resourceName"),
        ({"mediatedDevices": [mdev("a", "b/c"), mdev("a", "a/b/c")]}, r"mediatedDevices\[1\].resourceName"),
        ({"mediatedDevices": [{"mdevNameSelector": 1}]}, r"mediatedDevices\[0\].mdevNameSelector"),
        ({"usb": [usb("a/b", ("046d", "xyz"))]}, r"usb\[0\].selectors\[0\].product"),
        ({"usb": [{"resourceName": "a/b", "selectors": [3]}]}, r"usb\[0\].selectors\[0\]"),
    ],
)
def test_what_is_not_as_it_should_be_is_named(machine: Machine, permitted: dict[str, Any], path: str) -> None:
    with pytest.raises(FieldError, match=rf"spec.configuration.permittedHostDevices.{path}"):
        offers(machine, **permitted)


def test_of_two_kinds_for_one_resource_the_first_counts(machine: Machine) -> None:
    machine.pci("0000:65:00.0", "10DE:1EB8", "45")
    machine.usb("1-1", MOUSE, 1, 2)
    both = {"usb": [usb("a.b/c", ("046d", "c077"))], "pciHostDevices": [pci("10DE:1EB8", "a.b/c")]}
    (found,) = offers(machine, **both).values()
    assert isinstance(found, VfioDevices)


def test_the_variable_is_the_launchers() -> None:
    assert variable_of("PCI_RESOURCE", "my.vendor.com/the-gpu_1") == "PCI_RESOURCE_MY_VENDOR_COM_THE-GPU_1"


@given(st.text(min_size=1, max_size=320))
def test_sockets_have_names_that_fit(resource: str) -> None:
    name = socket_name_of(resource)
    assert "/" not in name
    assert "\0" not in name
    assert len(os.fsencode(f"/var/lib/kubelet/device-plugins/.{name}")) <= 107


def test_sockets_of_two_resources_are_two() -> None:
    names = ["a.com/b", "a.com/b-c", "a.com-b/c", "a.com/" + 60 * "x", "a.com/" + 61 * "x"]
    assert len({socket_name_of(name) for name in names}) == len(names)
