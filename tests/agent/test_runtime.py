"""Limits, ownership and files of a launcher."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvnode.agent.errors import AgentError, CriticalNetworkError
from kvnode.agent.memlock import locks_memory, memlock_bytes, set_memlock, target_process
from kvnode.agent.ownership import claim_devices
from kvnode.agent.processes import descendants, household_of, parent_of
from kvnode.agent.rootfs import names_in_root, opened, size_in_root
from kvnode.spec.config import ClusterConfig
from kvnode.spec.overhead import memory_overhead
from tests.agent.build import vmi

MIB = 1 << 20
EMULATED = ClusterConfig.from_mapping({"developerConfiguration": {"useEmulation": True}})
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="files are given to others")


def machine(**domain: Any) -> dict[str, Any]:
    status = domain.pop("status", None)
    devices = {"autoattachPodInterface": False, **domain.pop("devices", {})}
    return vmi("Scheduled", spec={"domain": {"devices": devices, **domain}}, status=status)


class TestMemlock:
    def test_only_what_locks_memory_needs_it(self) -> None:
        assert not locks_memory(machine())
        assert locks_memory(machine(devices={"gpus": [{"name": "g"}]}))
        assert locks_memory(machine(devices={"interfaces": [{"name": "n", "sriov": {}}]}))
        assert locks_memory(machine(cpu={"realtime": {}}))
        assert locks_memory(machine(launchSecurity={"sev": {}}))
        assert locks_memory(machine(memory={"reservedOverhead": {"memLock": "Required"}}))
        assert not locks_memory(machine(memory={"reservedOverhead": {"memLock": "NotRequired"}}))

    def test_overhead_and_memory_once_a_device(self) -> None:
        one = machine(memory={"guest": "64Mi"}, devices={"gpus": [{"name": "a"}]})
        two = machine(
            memory={"guest": "64Mi"}, devices={"gpus": [{"name": "a"}], "hostDevices": [{"name": "b"}]}
        )
        rounded = 67_109_000  # 64Mi in thousands, rounded up
        assert memlock_bytes(one, "amd64", ClusterConfig()) == memory_overhead(one, "amd64") + rounded
        expected = memory_overhead(two, "amd64") + rounded + 64 * MIB
        assert memlock_bytes(two, "amd64", ClusterConfig()) == expected

    def test_the_largest_that_the_guest_may_have_counts_and_the_target_s_overhead(self) -> None:
        found = machine(
            memory={"guest": "64Mi", "maxGuest": "1000k"},
            status={"migrationState": {"targetMemoryOverhead": "5000"}},
        )
        assert memlock_bytes(found, "amd64", ClusterConfig()) == 1_000_000 + 5000

    def test_the_daemon_before_the_start_and_qemu_after_it(self) -> None:
        processes = [(1, "virtqemud"), (2, "qemu-system-x86")]
        assert target_process(machine(), processes) == 1
        assert target_process(vmi("Running"), processes) == 2
        assert target_process(machine(), []) is None
        with pytest.raises(AgentError, match="no QEMU"):
            target_process(vmi("Running"), processes[:1])

    def test_it_is_really_set(self) -> None:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            set_memlock(process.pid, 4 * MIB)
            found = resource.prlimit(process.pid, resource.RLIMIT_MEMLOCK)
            process.communicate(b"\n")
        assert found == (4 * MIB, 4 * MIB)
        with pytest.raises(AgentError, match="is gone"):
            set_memlock(process.pid, MIB)

    def test_a_refusal_is_one_clear_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_arguments: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(resource, "prlimit", refuse)
        with pytest.raises(AgentError, match=r"process 7 cannot be set to 9 bytes: .*CAP_SYS_RESOURCE"):
            set_memlock(7, 9)


class TestProcesses:
    def test_children_are_found_below_their_parent(self) -> None:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            assert process.pid in [pid for pid, _ in descendants(os.getpid())]
            assert parent_of(process.pid) == os.getpid()
            household = household_of(process.pid)
            assert household.monitor == os.getpid()
            assert not household.has_qemu()
            process.communicate(b"\n")

    def test_a_household_with_qemu_and_one_whose_pid_is_another_s_now(self, tmp_path: Path) -> None:
        def process(pid: int, name: str, parent: int, started: int) -> None:
            folder = tmp_path / str(pid)
            folder.mkdir(exist_ok=True)
            rest = " ".join(["S", str(parent), *["0"] * 17, str(started), "0"])
            (folder / "stat").write_text(f"{pid} ({name}) {rest}")

        process(10, "virt) launcher", 9, 100)
        process(9, "monitor", 1, 90)
        process(11, "qemu-kvm", 9, 110)
        household = household_of(10, tmp_path)
        assert household.monitor == 9
        assert household.has_qemu(tmp_path)
        process(9, "other", 1, 500)
        assert not household.has_qemu(tmp_path)


class TestRoot:
    def test_links_stay_inside(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        (root / "run").mkdir(parents=True)
        (root / "run/file").write_text("inside")
        (tmp_path / "run").mkdir()
        (tmp_path / "run/file").write_text("outside, and longer")
        (root / "var").symlink_to("/run")
        (root / "up").symlink_to("../../run")
        assert size_in_root(root, "/var/file") == size_in_root(root, "up/file") == 6
        with pytest.raises(OSError, match="symbolic"), opened(root, "var/file", follow=False):
            pass
        assert names_in_root(root, "run") == ["file"]
        assert names_in_root(root, "none") == []


@needs_root
class TestOwnership:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "dev/net").mkdir(parents=True)
        return tmp_path

    def device(self, root: Path, name: str) -> Path:
        path = root / "dev" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
        return path

    def owner(self, path: Path) -> tuple[int, int]:
        found = path.lstat()
        return found.st_uid, found.st_gid

    def test_kvm_is_needed_unless_there_is_emulation(self, root: Path) -> None:
        with pytest.raises(AgentError, match="/dev/kvm: cannot be given to its user: No such file"):
            claim_devices(machine(), root, ClusterConfig())
        claim_devices(machine(), root, EMULATED)
        kvm = self.device(root, "kvm")
        claim_devices(machine(), root, ClusterConfig())
        assert self.owner(kvm) == (107, 107)

    def test_a_launcher_without_root_gets_the_rest(self, root: Path) -> None:
        made = [self.device(root, name) for name in ("kvm", "net/tun", "vhost-net", "vfio/3", "blk")]
        master = self.device(root, "vfio/vfio")
        image = root / "var/run/kubevirt-private/vmi-disks/data/disk.img"
        image.parent.mkdir(parents=True)
        image.touch()
        found = vmi(
            "Scheduled",
            spec={
                "domain": {"devices": {"interfaces": [{"name": "n"}]}},
                "volumes": [
                    {"name": "blk", "persistentVolumeClaim": {"claimName": "c"}},
                    {"name": "data", "hostDisk": {"path": "/x/disk.img", "type": "DiskOrCreate"}},
                ],
            },
            status={
                "runtimeUser": 107,
                "volumeStatus": [{"name": "blk", "persistentVolumeClaimInfo": {"volumeMode": "Block"}}],
            },
        )
        claim_devices(found, root, ClusterConfig())
        assert {self.owner(path) for path in (*made, image)} == {(107, 107)}
        assert self.owner(master) == (0, 0)
        assert master.stat().st_mode & 0o777 == 0o666
        image.unlink()
        with pytest.raises(AgentError, match=r"volume data: hostDisk.path: /x/disk.img is not there"):
            claim_devices(found, root, ClusterConfig())
        # The folder may be one of the node's.
        assert self.owner(image.parent) == (0, 0)

    def test_block_devices_of_data_volumes_too(self, root: Path) -> None:
        made = [self.device(root, name) for name in ("kvm", "net/tun", "blk", "file")]
        names = {"blk": {"volumeMode": "Block"}, "file": {"volumeMode": "Filesystem"}}
        found = vmi(
            "Scheduled",
            spec={"volumes": [{"name": name, "dataVolume": {"name": "d"}} for name in (*names, "unknown")]},
            status={
                "runtimeUser": 107,
                "volumeStatus": [
                    {"name": one, "persistentVolumeClaimInfo": info} for one, info in names.items()
                ],
            },
        )
        claim_devices(found, root, ClusterConfig())
        assert [self.owner(path) for path in made[2:]] == [(107, 107), (0, 0)]

    def test_a_block_device_that_is_not_there_is_libvirts_to_miss(self, root: Path) -> None:
        """It is named better by what opens it."""
        for name in ("kvm", "net/tun"):
            self.device(root, name)
        claim = {"name": "blk", "persistentVolumeClaim": {"claimName": "c"}}
        info = {"name": "blk", "persistentVolumeClaimInfo": {"volumeMode": "Block"}}
        found = vmi(
            "Scheduled", spec={"volumes": [claim]}, status={"runtimeUser": 107, "volumeStatus": [info]}
        )
        claim_devices(found, root, ClusterConfig())

    def test_sev_vsock_and_shared_folders(self, root: Path) -> None:
        """Whoever the launcher runs as."""
        made = [self.device(root, name) for name in ("kvm", "sev", "vhost-vsock")]
        socket = root / "var/run/kubevirt/virtiofs-containers/share.sock"
        socket.parent.mkdir(parents=True)
        socket.touch()
        domain = {
            "launchSecurity": {"sev": {}},
            "devices": {"autoattachVSOCK": True, "filesystems": [{"name": "share", "virtiofs": {}}]},
        }
        claim_devices(vmi("Scheduled", spec={"domain": domain}), root, ClusterConfig())
        assert {self.owner(path) for path in (*made, socket)} == {(107, 107)}

    def test_a_block_device_is_a_device(self, root: Path) -> None:
        for name in ("kvm", "net/tun"):
            self.device(root, name)
        os.mknod(root / "dev/blk", 0o600 | stat.S_IFBLK, os.makedev(1, 0))
        claim = {"name": "blk", "persistentVolumeClaim": {"claimName": "c"}}
        info = {"name": "blk", "persistentVolumeClaimInfo": {"volumeMode": "Block"}}
        found = vmi(
            "Scheduled", spec={"volumes": [claim]}, status={"runtimeUser": 107, "volumeStatus": [info]}
        )
        claim_devices(found, root, ClusterConfig())
        assert self.owner(root / "dev/blk") == (107, 107)

    def test_emulation_needs_no_vhost_net(self, root: Path) -> None:
        for name in ("kvm", "net/tun"):
            self.device(root, name)
        card = {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}}
        found = vmi("Scheduled", spec={"domain": card}, status={"runtimeUser": 107})
        emulation = ClusterConfig.from_mapping({"developerConfiguration": {"useEmulation": True}})
        claim_devices(found, root, emulation)
        with pytest.raises(CriticalNetworkError, match="/dev/vhost-net"):
            claim_devices(found, root, ClusterConfig())

    def test_a_missing_device_of_the_network_fails_the_vm(self, root: Path) -> None:
        self.device(root, "kvm")
        found = vmi("Scheduled", status={"runtimeUser": 107})
        with pytest.raises(CriticalNetworkError, match="/dev/net/tun"):
            claim_devices(found, root, ClusterConfig())

    def test_links_and_files_are_no_devices(self, root: Path) -> None:
        target = root / "secret"
        target.touch()
        (root / "dev/kvm").symlink_to("/secret")
        with pytest.raises(AgentError, match="/dev/kvm"):
            claim_devices(machine(), root, ClusterConfig())
        (root / "dev/kvm").unlink()
        (root / "dev/kvm").touch()
        with pytest.raises(AgentError, match="is no device"):
            claim_devices(machine(), root, ClusterConfig())
        assert self.owner(target) == (0, 0)
