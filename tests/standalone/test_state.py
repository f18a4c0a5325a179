"""The state directory with damaged, stale and foreign things in it. No VM is run here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvnode.standalone import records
from kvnode.standalone.errors import EXIT_EXISTS, EXIT_NOT_FOUND
from kvnode.standalone.runner import Runner, StandaloneError, default_state_dir
from kvnode.standalone.state import StateDirectory, VmDirectory
from kvnode.standalone.view import console, describe


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    """An empty state directory."""
    made = StateDirectory(tmp_path / "state")
    made.make()
    return made


def ended_vm(
    state: StateDirectory, name: str = "old", phase: str = "Running", namespace: str = "default"
) -> VmDirectory:
    """A VM whose processes died, as the files of one that ran tell."""
    vm = state.vm(namespace, name)
    serial = vm.path / "run/kubevirt-private/uid-1/virt-serial0-log"
    serial.parent.mkdir(parents=True)
    serial.write_text("the guest's last words")
    log = vm.path / f"log/qemu/{vm.domain}.log"
    log.parent.mkdir(parents=True)
    log.write_text("qemu's")
    for part in ("etc", "lib"):
        (vm.path / part).mkdir()
    records.write_json(
        vm.path / "record.json", {"uid": "uid-1", "domainType": "qemu", "memoryBytes": 7, "vcpus": 2}
    )
    records.write_json(vm.path / "status.json", {"phase": phase, "created": "2026-01-01T00:00:00Z"})
    records.write_process(vm.path / records.LAUNCHER_PID, os.getpid())
    raw = json.loads((vm.path / records.LAUNCHER_PID).read_bytes())
    records.write_json(vm.path / records.LAUNCHER_PID, {**raw, "start": raw["start"] - 1})  # an id given anew
    return vm


def test_a_vm_that_died_is_cleaned_up_behind_and_its_logs_kept(state: StateDirectory) -> None:
    vm = ended_vm(state)
    runner = Runner(state.path)
    (info,) = runner.list_vms()
    assert (info.phase, info.reason, info.running) == ("Failed", "LauncherDied", False)
    assert (info.memory_bytes, info.vcpus, info.pid, info.console) == (7, 2, None, "")
    assert sorted(entry.name for entry in vm.path.iterdir()) == ["logs", "record.json", "status.json"]
    assert runner.log_paths("old")["serial"].read_text() == "the guest's last words"
    assert runner.log_paths("old")["qemu"].read_text() == "qemu's"
    assert runner.list_vms(ended=False) == []


def test_an_end_that_the_launcher_wrote_is_kept(state: StateDirectory) -> None:
    ended_vm(state, phase="Succeeded")
    (info,) = Runner(state.path).list_vms()
    assert (info.phase, info.reason) == ("Succeeded", "")


@pytest.mark.parametrize("file", ["status.json", "record.json", "launcher.pid"])
@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"[1]", b'{"phase": 7, "uid": [], "notes": "x", "vcpus": true}']
)
def test_damaged_files_do_no_harm(state: StateDirectory, file: str, content: bytes | None) -> None:
    vm = ended_vm(state)
    if content is None:
        (vm.path / file).unlink()
    else:
        (vm.path / file).write_bytes(content)
    runner = Runner(state.path)
    (info,) = runner.list_vms()
    assert not info.running
    assert info.name == "old"
    runner.forget("old")
    assert runner.list_vms() == []


def test_foreign_and_half_made_things_are_passed_over(state: StateDirectory) -> None:
    (state.vms / "notes.txt").write_text("mine")
    (state.vms / "No_Capitals").mkdir()
    (state.vms / "plain-file_x").write_text("")
    (state.vms / "a_link").symlink_to("/etc")
    (state.vms / ".new-default_half").mkdir()
    ended_vm(state, name="half")
    assert [vm.name for vm in Runner(state.path).list_vms()] == ["half"]
    assert not (state.vms / ".new-default_half").exists()
    assert (state.vms / "notes.txt").exists()


def test_no_state_directory_means_no_vms(tmp_path: Path) -> None:
    runner = Runner(tmp_path / "absent")
    assert runner.list_vms() == []
    with pytest.raises(StandaloneError) as error:
        runner.get("web")
    assert error.value.exit_code == EXIT_NOT_FOUND
    assert not (tmp_path / "absent").exists(), "looking makes nothing"


def test_a_state_directory_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(StandaloneError, match=r"the state directory .* cannot be used: Not a directory"):
        StateDirectory(tmp_path / "f/state").make()


def test_the_same_name_in_two_namespaces_needs_the_namespace(state: StateDirectory) -> None:
    for namespace in ("b", "c"):
        ended_vm(state, "web", namespace=namespace)
    runner = Runner(state.path)
    with pytest.raises(StandaloneError, match="several of that name: b/web, c/web"):
        runner.get("web")
    assert runner.get("c/web").namespace == "c"
    ended_vm(state, "web")
    assert runner.get("web").namespace == "default"


@pytest.mark.parametrize("name", ["", "/", "a/b/c", "../web", "none\nof us", "x" * 5000])
def test_odd_names_are_not_found(state: StateDirectory, name: str) -> None:
    with pytest.raises(StandaloneError) as error:
        Runner(state.path).get(name)
    assert error.value.exit_code == EXIT_NOT_FOUND
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


_HOLD = """
import sys
from pathlib import Path
from kvnode.standalone.state import StateDirectory
state = StateDirectory(Path(sys.argv[1]))
with state.lock(state.vm("default", "old")):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_vm_that_another_process_works_on_is_left_alone(state: StateDirectory) -> None:
    vm = ended_vm(state)
    command = [sys.executable, "-c", _HOLD, str(state.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        (info,) = Runner(state.path).list_vms()
        assert info.phase == "Running", "not concluded: it may be on its way up"
        with pytest.raises(StandaloneError, match="is being started or stopped") as error, state.lock(vm):
            pass
        assert error.value.exit_code == EXIT_EXISTS
        holder.communicate()  # which ends it
    assert Runner(state.path).get("old").phase == "Failed"


def test_a_start_that_fails_while_building_keeps_what_was_there(state: StateDirectory) -> None:
    vm = ended_vm(state)

    def build_half() -> None:
        with state.lock(vm), state.building(vm) as directory:
            (directory / "vmi.json").write_text("{}")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        build_half()
    assert (vm.path / "record.json").exists()
    assert [entry.name for entry in state.vms.iterdir() if entry.name.startswith(".new")] == []


def test_a_console_path_is_short_enough_to_connect_to(tmp_path: Path) -> None:
    process = records.Process(123, 1, "")
    uid = "0123456789-0123456789-0123456789-012"
    near = VmDirectory(Path("/s/vms/default_a"), "default", "a")
    assert console(near, uid, process) == Path(f"/s/vms/default_a/run/kubevirt-private/{uid}/virt-serial0")
    far = VmDirectory(tmp_path / ("x" * 80) / "vms/default_a", "default", "a")
    assert str(console(far, uid, process)).startswith("/proc/123/root/run/")
    assert len(str(console(far, uid, process))) <= 107


def test_the_default_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_state_dir() == Path("/state/kvnode")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_state_dir() == Path("/home/x/.local/state/kvnode")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_state_dir() == Path("/home/x/.local/state/kvnode")


def test_titles() -> None:
    assert VmDirectory(Path("/v"), "default", "a").title == "a"
    assert VmDirectory(Path("/v"), "team", "a").title == "team/a"
    assert describe(VmDirectory(Path("/nowhere"), "team", "a")).phase == "Unknown"


def test_a_link_in_the_locks_place_is_not_followed(state: StateDirectory, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    vm = ended_vm(state)
    (state.vms / f"{vm.domain}.lock").symlink_to(precious)
    with pytest.raises(OSError, match=r"default_old\.lock"), state.lock(vm):
        pass
    assert precious.read_text() == "kept"


def test_a_lock_whose_file_was_removed_holds_nobody_off(state: StateDirectory) -> None:
    vm = ended_vm(state)
    with state.lock(vm):
        (state.vms / f"{vm.domain}.lock").unlink()
        with state.lock(vm), pytest.raises(StandaloneError), state.lock(vm):
            pass


def test_a_directory_in_the_place_of_a_record_is_cleaned_up(state: StateDirectory) -> None:
    vm = ended_vm(state)
    (vm.path / records.LAUNCHER_PID).unlink()
    (vm.path / records.LAUNCHER_PID / "inside").mkdir(parents=True)
    Runner(state.path).forget("old")
    assert list(state.vms.iterdir()) == []
