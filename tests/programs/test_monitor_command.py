"""virt-launcher-monitor: which command the launcher pod's command line becomes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kvnode.launcher.programs import monitor

POD = ["--qemu-timeout", "250s", "--name", "vm", "--container-disk-dir", "/disks", "--allow-emulation"]


def command(
    arguments: list[str], program: Path = Path("/nowhere/virt-launcher-monitor")
) -> tuple[list[str], list[str]]:
    """The monitor's own arguments, and the launcher's command."""
    made = monitor.monitor_command(arguments, program)
    assert made[:3] == [sys.executable, "-I", "-S"]
    assert Path(made[3]).name == "monitor.py"
    split = made.index("--")
    return made[4:split], made[split + 1 :]


def test_the_launcher_gets_all_that_the_monitor_got() -> None:
    own, launcher = command(POD)
    assert own == ["--pod", "--container-disk-dir", "/disks"]
    assert launcher == ["/usr/bin/virt-launcher", *POD]


@pytest.mark.parametrize("flag", ["--keep-after-failure", "--keep-after-failure=true"])
def test_the_flag_to_stay_is_the_monitors(flag: str) -> None:
    own, launcher = command(["--name", "vm", flag])
    assert own == ["--pod", "--container-disk-dir", monitor.DEFAULT_DISKS, "--keep-after-failure"]
    assert launcher[1:] == ["--name", "vm"]


def test_the_other_way_to_write_a_flag() -> None:
    own, launcher = command(["--container-disk-dir=/disks", "--keep-after-failure=false"])
    assert own == ["--pod", "--container-disk-dir", "/disks"]
    assert launcher[1:] == ["--container-disk-dir=/disks"]


def test_a_launcher_beside_the_program_is_preferred(tmp_path: Path) -> None:
    (tmp_path / "virt-launcher").touch()
    _, launcher = command([], tmp_path / "virt-launcher-monitor")
    assert launcher == [str(tmp_path / "virt-launcher")]


def test_the_whole_way(tmp_path: Path) -> None:
    """The program becomes the monitor, and that starts the launcher, whose status is the outcome."""
    disks = tmp_path / "disks"
    disks.mkdir()
    (disks / "disk_0.sock").touch()
    (disks / "disk_0.img").touch()
    launcher = tmp_path / "virt-launcher"
    launcher.write_text('#!/bin/sh\necho "$0 $@"\nexit 5\n')
    launcher.chmod(0o755)
    script = f"import sys; sys.argv[0] = {str(tmp_path / 'virt-launcher-monitor')!r}; "
    script += "from kvnode.launcher.programs.monitor import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", script, "--name", "vm", "--container-disk-dir", str(disks)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 5
    assert done.stdout == f"{launcher} --name vm --container-disk-dir {disks}\n"
    assert [file.name for file in disks.iterdir()] == ["disk_0.img"]


def test_a_signal_that_comes_before_there_is_a_monitor_is_not_lost(tmp_path: Path) -> None:
    launcher = tmp_path / "virt-launcher"
    waits = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); sleep 0.1; done; exit 9"
    launcher.write_text(f"#!/bin/sh\ntrap 'exit 4' TERM\n{waits}\n")
    launcher.chmod(0o755)
    script = f"""
import os, signal, sys
from kvnode.launcher.programs import monitor
sys.argv[0] = {str(tmp_path / "virt-launcher-monitor")!r}
command = monitor.monitor_command
def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    return command(*arguments)
monitor.monitor_command = interrupted
sys.exit(monitor.main(["--container-disk-dir", {str(tmp_path)!r}]))
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert done.returncode == 4
