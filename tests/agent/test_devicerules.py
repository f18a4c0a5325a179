"""Devices that control groups allow: what a VM needs, and real groups of version 1."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvnode.agent.cgroups import Groups, groups_of
from kvnode.agent.devicerules import Rule, allow, deny, needed, read_rules
from kvnode.agent.errors import AgentError
from tests.agent.build import vmi

CGROUPS = Path("/sys/fs/cgroup")
NULL, ZERO, KVM, TUN = (1, 3), (1, 5), (10, 232), (10, 200)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes device nodes")
version_1 = pytest.mark.skipif(
    os.geteuid() != 0 or not (CGROUPS / "devices/devices.list").exists(),
    reason="needs control groups of version 1, and root",
)


def machine(**devices: Any) -> dict[str, Any]:
    launch: dict[str, Any] = {"launchSecurity": {"sev": {}}} if devices.pop("sev", False) else {}
    return vmi(
        "Scheduled", spec={"domain": {"devices": {"autoattachPodInterface": False, **devices}, **launch}}
    )


def node(dev: Path, name: str, numbers: tuple[int, int], kind: int = 0o020000) -> None:
    path = dev / name
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(path, kind | 0o600, os.makedev(*numbers))


class TestRules:
    def test_a_list_is_read(self) -> None:
        text = "c 1:3 rwm\nb *:* m\na *:* rwm\nnonsense\nc 1 r\n"
        assert [str(rule) for rule in read_rules(text)] == ["c 1:3 rwm", "b *:* m", "a *:* rwm"]

    @pytest.mark.parametrize(
        ("known", "covered"),
        [
            ("a *:* rwm", True),
            ("c *:* rw", True),
            ("c 10:* rw", True),
            ("c 10:200 rwm", True),
            ("c 10:200 r", False),
            ("b 10:200 rwm", False),
            ("c 10:201 rwm", False),
            ("c *:* m", False),
        ],
    )
    def test_what_covers_what(self, known: str, covered: bool) -> None:
        (rule,) = read_rules(known)
        assert rule.covers(Rule("c", "10", "200", "rw")) is covered


@needs_root
class TestNeeded:
    @pytest.fixture
    def roots(self, tmp_path: Path) -> tuple[Path, Path]:
        """The launcher's root, and the node's /dev; both have the same devices."""
        root, host = tmp_path / "root", tmp_path / "host"
        names = {
            "kvm": KVM,
            "net/tun": TUN,
            "vhost-net": (10, 238),
            "urandom": (1, 9),
            "vhost-vsock": (10, 241),
        }
        names |= {"sev": (10, 124), "vfio/vfio": (10, 196), "vfio/45": (240, 0)}
        for name, numbers in names.items():
            node(root / "dev", name, numbers)
            node(host, name, numbers)
        return root, host

    def rules(self, found: dict[str, Any], roots: tuple[Path, Path]) -> set[str]:
        return {str(rule) for rule in needed(found, *roots)}

    def test_a_vm_needs_what_it_asks_for(self, roots: tuple[Path, Path]) -> None:
        assert self.rules(machine(), roots) == {"c 10:232 rw"}
        assert self.rules(machine(interfaces=[{"name": "n"}]), roots) == {
            *("c 10:232 rw", "c 10:200 rw", "c 10:238 rw")
        }
        rest = self.rules(machine(rng={}, autoattachVSOCK=True, sev=True), roots)
        assert rest == {"c 10:232 rw", "c 1:9 rw", "c 10:241 rw", "c 10:124 rw"}

    def test_devices_that_a_vm_has_for_itself_are_kubelets_to_give(self, roots: tuple[Path, Path]) -> None:
        """A launcher that may make nodes would have another VM's GPU by its number."""
        gpus = machine(gpus=[{"name": "g", "deviceName": "vendor.example/gpu"}])
        assert self.rules(gpus, roots) == {"c 10:232 rw"}

    def test_without_the_node_there_is_nothing_to_allow(self, roots: tuple[Path, Path]) -> None:
        (roots[0] / "dev/kvm").unlink()
        assert self.rules(machine(), roots) == set()

    def test_a_node_that_is_another_device_is_not_allowed(self, roots: tuple[Path, Path]) -> None:
        """It would have the machine's disk, or its memory, by the name of a harmless device."""
        for name, numbers, kind in (("sev", (8, 0), 0o060000), ("kvm", (1, 1), 0o020000)):
            (roots[0] / "dev" / name).unlink()
            node(roots[0] / "dev", name, numbers, kind)
        (roots[0] / "dev/urandom").unlink()
        (roots[0] / "dev/urandom").symlink_to("/dev/vhost-net")
        assert self.rules(machine(rng={}, sev=True), roots) == set()


class TestGroups:
    def test_version_1_has_a_folder_for_each_controller(self, tmp_path: Path) -> None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7/cgroup").write_text(
            "9:name=systemd:/pod\n5:cpu,cpuacct:/pod/c\n4:cpuset:/pod/c/housekeeping\n0::/pod\n"
        )
        found = groups_of(7, proc=tmp_path, root=tmp_path / "cgroup")
        assert not found.unified
        assert found.folder("cpuacct") == tmp_path / "cgroup/cpuacct/pod/c"
        assert found.folder("cpuset") == tmp_path / "cgroup/cpuset/pod/c"
        with pytest.raises(AgentError, match="none of the controller devices"):
            found.folder("devices")

    def test_version_2_has_one_for_all(self, tmp_path: Path) -> None:
        (tmp_path / "cgroup").mkdir()
        (tmp_path / "cgroup/cgroup.controllers").touch()
        (tmp_path / "7").mkdir()
        (tmp_path / "7/cgroup").write_text("0::/kubepods/c/housekeeping\n")
        found = groups_of(7, proc=tmp_path, root=tmp_path / "cgroup")
        assert found.unified
        assert found.folder("devices") == found.folder("cpuset") == tmp_path / "cgroup/kubepods/c"
        # The runtime's filter has all that came with the pod.
        assert allow(found, [Rule("c", "1", "5", "rw")]) == []
        deny(found, [])

    def test_without_the_controller_all_is_allowed(self) -> None:
        assert allow(Groups(False, {}), [Rule("c", "1", "5", "rw")]) == []
        deny(Groups(False, {}), [])

    def test_a_process_that_is_gone(self, tmp_path: Path) -> None:
        with pytest.raises(AgentError, match="process 7: No such file"):
            groups_of(7, proc=tmp_path)


_OPENS = """
import sys
for name in sys.stdin:
    try:
        open(name.strip(), "rb")
        print("yes", flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""


@version_1
class TestReal:
    @pytest.fixture
    def process(self) -> Iterator[subprocess.Popen[str]]:
        """A process in a control group that allows it /dev/null alone; it opens what it is told to."""
        group = CGROUPS / "devices" / f"kvnode-test-{secrets.token_hex(4)}"
        group.mkdir()
        command = [sys.executable, "-c", _OPENS]
        try:
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as process:
                self.opens(process, "/dev/null")  # it has loaded all that it needs
                (group / "devices.deny").write_text("a")
                (group / "devices.allow").write_text("c 1:3 rw")
                (group / "tasks").write_text(str(process.pid))
                yield process
                assert process.stdin is not None
                process.stdin.close()
                process.wait(10)
        finally:
            group.rmdir()

    def opens(self, process: subprocess.Popen[str], name: str) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(name + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    def groups(self, process: subprocess.Popen[str]) -> Groups:
        return groups_of(process.pid, root=CGROUPS)

    def test_a_device_is_allowed_and_taken_back(self, process: subprocess.Popen[str]) -> None:
        groups = self.groups(process)
        assert self.opens(process, "/dev/zero") == "Operation not permitted"
        wanted = [Rule("c", "1", "3", "rw"), Rule("c", "1", "5", "rw")]
        added = allow(groups, wanted)
        assert added == wanted[1:]
        assert self.opens(process, "/dev/zero") == "yes"
        assert allow(groups, wanted) == []
        deny(groups, added)
        assert self.opens(process, "/dev/zero") == "Operation not permitted"
        assert self.opens(process, "/dev/null") == "yes"

    def test_a_refusal_is_one_error_and_leaves_nothing(self, process: subprocess.Popen[str]) -> None:
        with pytest.raises(AgentError, match="devices cannot be allowed: Invalid argument"):
            allow(self.groups(process), [Rule("c", "1", "5", "rw"), Rule("x", "1", "5", "rw")])
        assert self.opens(process, "/dev/zero") == "Operation not permitted"

    def test_a_group_that_is_gone_is_no_error_at_the_end(self, process: subprocess.Popen[str]) -> None:
        deny(Groups(False, {"devices": CGROUPS / "devices/kvnode-none"}), [Rule("c", "1", "5", "rw")])
        assert self.opens(process, "/dev/null") == "yes"
