"""A VM's namespaces, with a shell in the place of its monitor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvnode.memory.processes import in_namespaces_of
from kvnode.standalone import launch
from kvnode.standalone.errors import StandaloneError
from kvnode.standalone.sandbox import Bind, Plan
from kvnode.standalone.state import OVERLAID, StateDirectory, VmDirectory, kill
from tests.standalone.helpers import alive, mounts_below, wait_until


@pytest.fixture
def vm(tmp_path: Path) -> Iterator[VmDirectory]:
    """A VM's directory as a start makes it; what runs in its namespaces is ended after the test."""
    state = StateDirectory(tmp_path / "state")
    state.make()
    made = state.vm("default", "box")
    for part in OVERLAID:
        (made.path / part).mkdir(parents=True)
    (state.cache / "libvirt").mkdir()
    yield made
    process = made.process()
    if process is not None:
        kill(process)


def start(vm: VmDirectory, script: str, *binds: Bind) -> None:
    """Run a shell script as the first process of the VM's namespaces."""
    cache = vm.path.parent.parent / "cache/libvirt"
    launch.start_sandbox(vm, ["sh", "-c", script], binds, str(cache), huge_pages=False)


def test_a_plan_survives_its_command_line() -> None:
    plan = Plan("/d '\n", "/c", (Bind("/a b", "/run/x", read_only=True),), True, ("sh", "-c", 'echo "$1"'))
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.integration
class TestNamespaces:
    """Mounts, processes, and their end."""

    def test_the_vms_parts_are_laid_over_the_paths_of_a_pod(self, vm: VmDirectory, tmp_path: Path) -> None:
        (tmp_path / "disk.img").write_text("an image")
        (tmp_path / "hostdir").mkdir()
        script = """
            echo $$ > /run/kvnode/id
            ls /proc | grep -c '^[0-9]' > /run/kvnode/count
            mkdir -p /var/run/kubevirt-private && echo private > /var/run/kubevirt-private/f
            echo conf > /etc/libvirt/qemu.conf
            echo lib > /var/lib/libvirt/l
            echo cache > /var/cache/libvirt/c
            cat /var/run/kubevirt/container-disks/disk_0.img > /run/kvnode/seen
            echo x > /var/run/kubevirt/container-disks/disk_0.img || echo refused > /run/kvnode/refused
            echo new > /var/run/kubevirt-private/vmi-disks/d/made
            getent passwd libvirt-qemu > /run/kvnode/account
            pwd > /run/kvnode/done
        """
        start(
            vm,
            script,
            Bind(str(tmp_path / "disk.img"), "/var/run/kubevirt/container-disks/disk_0.img", read_only=True),
            Bind(str(tmp_path / "hostdir"), "/var/run/kubevirt-private/vmi-disks/d", read_only=False),
        )
        done = vm.path / "done"
        wait_until(lambda: done.exists() and done.read_text() == "/\n", 120, "the script's end")

        def said(name: str) -> str:
            return (vm.path / name).read_text().strip()

        assert (said("id"), said("done")) == ("1", "/")
        assert int(said("count")) < 10, "only the VM's own processes are seen"
        assert (said("seen"), said("refused")) == ("an image", "refused")
        assert (vm.path / "run/kubevirt-private/f").read_text() == "private\n"
        assert (vm.path / "etc/qemu.conf").read_text() == "conf\n"
        assert (vm.path / "lib/l").read_text() == "lib\n"
        assert (vm.path.parent.parent / "cache/libvirt/c").read_text() == "cache\n"
        assert (tmp_path / "hostdir/made").read_text() == "new\n"
        assert said("account").startswith("libvirt-qemu:")
        wait_until(lambda: vm.process() is None, 120, "the end")
        assert mounts_below(tmp_path) == []

    def test_killing_the_first_process_ends_all(self, vm: VmDirectory, tmp_path: Path) -> None:
        start(vm, "setsid sleep 1000 & nohup sleep 1001 & touch /run/kvnode/up; wait")
        wait_until((vm.path / "up").exists, 120, "the start")
        process = vm.process()
        assert process is not None

        def members_now() -> list[int]:
            return [member.pid for member in in_namespaces_of(process.pid)]

        wait_until(lambda: len(members_now()) == 3, 120, "the shell and what it started alone")
        members = members_now()
        kill(process)
        assert not any(alive(pid) for pid in members)
        assert mounts_below(tmp_path) == []

    def test_it_is_away_from_this_session(self, vm: VmDirectory) -> None:
        start(vm, "touch /run/kvnode/up; exec sleep 1000")
        wait_until((vm.path / "up").exists, 120, "the start")
        process = vm.process()
        assert process is not None
        assert os.getsid(process.pid) != os.getsid(0)
        for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
            target = str(descriptor.readlink())
            assert target in {"/dev/null", str(vm.path / "launcher.log")}, (
                "nothing of the caller's stays open"
            )

    def test_what_cannot_be_mounted_is_said_in_the_log(self, vm: VmDirectory) -> None:
        start(vm, "true", Bind("/no/such/file", "/run/x", read_only=True))
        wait_until(lambda: vm.process() is None, 120, "the end")
        said = launch.last_line(vm.path / "launcher.log")
        assert said.startswith("sandbox: cannot set up the VM's namespaces: No such file or directory (")

    def test_a_record_that_cannot_be_written_is_an_error(self, tmp_path: Path) -> None:
        gone = VmDirectory(tmp_path / "gone", "default", "gone")
        gone.path.mkdir()
        (gone.path / "launcher.pid").mkdir()
        with pytest.raises(StandaloneError, match="cannot set up the record of its first process: Is a dir"):
            launch.start_sandbox(gone, ["true"], (), str(tmp_path), huge_pages=False)
