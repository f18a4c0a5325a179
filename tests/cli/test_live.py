"""The command on real machines: libvirt, QEMU and the demo guest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Guest
from tests.standalone.helpers import alive, wait_until

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).parents[2] / "examples"
UP = "kvnode-guest: up"

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state directory; what runs in it is ended afterwards."""
    directory = tmp_path / "state"
    yield directory
    run(directory, "stop", "--all", "--now")


@pytest.fixture
def kvnode(state: Path) -> Command:
    return lambda *arguments, **options: run(state, *arguments, **options)


def run(state: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kvnode.cli", *arguments],
        input=stdin,
        env={**os.environ, "KVNODE_STATE_DIR": str(state)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def up(kvnode: Command, guest: Guest, *more: str) -> None:
    image = f"kernel-boot={guest.directory}"
    done = kvnode(
        *("up", str(EXAMPLES / "vmi-kernelboot.yaml"), "--image", image),
        *("--wait-for", UP, "--timeout", "500", *more),
    )
    assert done.returncode == 0, done.stderr


def listed(kvnode: Command) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(kvnode("ps", "-o", "json").stdout)
    return found


def answered(state: Path, line: str, answer: str) -> str:
    """What the console shows from a line's being typed on until the answer; its input stays open so long."""
    with subprocess.Popen(
        [sys.executable, "-m", "kvnode.cli", "console", "kernelboot"],
        env={**os.environ, "KVNODE_STATE_DIR": str(state)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as console:
        assert console.stdin is not None
        assert console.stdout is not None
        output = console.stdout
        os.set_blocking(output.fileno(), False)
        console.stdin.write(line.encode())
        console.stdin.flush()
        shown = b""

        def comes() -> bool:
            nonlocal shown
            shown += output.read() or b""
            return answer.encode() in shown

        try:
            wait_until(comes, 120, f"{answer!r} on the console")
        finally:
            console.stdin.close()
        assert console.wait(60) == 0
    return shown.decode(errors="replace")


def test_a_machine_comes_up_talks_and_shuts_down(kvnode: Command, state: Path, guest: Guest) -> None:
    up(kvnode, guest)
    (vm,) = listed(kvnode)
    assert (vm["phase"], vm["running"]) == ("Running", True)
    assert "kvnode-guest: touched 67108864 bytes" in kvnode("logs", "kernelboot").stdout
    assert "the answer is 42" in answered(state, "echo the answer is $((6 * 7))\n", "the answer is 42")
    assert kvnode("xml", "kernelboot").stdout.startswith("<domain ")
    report = json.loads(kvnode("memory", "kernelboot", "-o", "json").stdout)
    assert 64 << 20 < report["guest_resident"] < report["guest_size"] == 256 << 20
    assert {"launcher", "virtqemud", "qemu"} <= {process["role"] for process in report["processes"]}
    stopped = json.loads(kvnode("stop", "kernelboot", "-o", "json").stdout)[0]
    assert (stopped["outcome"], stopped["phase"]) == ("shutdown", "Succeeded")
    assert not any(alive(pid) for pid in vm["pids"].values())


def test_two_side_by_side_and_a_name_that_runs(kvnode: Command, guest: Guest) -> None:
    up(kvnode, guest)
    up(kvnode, guest, "--name", "second")
    assert [vm["name"] for vm in listed(kvnode)] == ["kernelboot", "second"]
    again = kvnode("up", str(EXAMPLES / "vmi-kernelboot.yaml"), "--image", f"kernel-boot={guest.directory}")
    assert again.returncode == 4
    assert len([line for line in again.stderr.splitlines() if line.startswith("kvnode: ")]) == 1
    assert kvnode("stop", "--now", "--all").returncode == 0
    assert not any(vm["running"] for vm in listed(kvnode))


@pytest.mark.parametrize("role", ["qemu", "launcher"])
def test_a_killed_process_takes_the_rest_with_it(kvnode: Command, guest: Guest, role: str) -> None:
    up(kvnode, guest)
    (vm,) = listed(kvnode)
    os.kill(vm["pids"][role], signal.SIGKILL)
    wait_until(lambda: not any(alive(pid) for pid in vm["pids"].values()), 120, "the end of all processes")
    (after,) = listed(kvnode)
    assert (after["phase"], after["running"], after["pids"]) == ("Failed", False, {})


def test_ctrl_c_while_it_comes_up_leaves_nothing(state: Path, guest: Guest) -> None:
    before = processes()
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "kvnode.cli", "up", str(EXAMPLES / "vmi-kernelboot.yaml")),
            *("--image", f"kernel-boot={guest.directory}", "--wait-for", "never comes"),
        ],
        env={**os.environ, "KVNODE_STATE_DIR": str(state)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "never comes" in line:
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
    assert [pid for pid in processes() - before if uses(pid, state)] == []


def processes() -> set[int]:
    return {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}


def uses(pid: int, state: Path) -> bool:
    """Whether a process was started for a machine of this state directory."""
    try:
        return str(state).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_the_demo_machine_and_a_template(kvnode: Command, guest: Guest) -> None:
    image = f"system={guest.qcow2}"
    files = [str(EXAMPLES / "vmi-demo.yaml"), str(EXAMPLES / "vm-demo.yaml")]
    done = kvnode("up", *files, "--image", image, "--wait-for", UP, "--timeout", "250", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert [vm["name"] for vm in json.loads(done.stdout)] == ["demo", "demo-vm"]
    assert "kvnode-guest: hello from the user data of demo\n" in kvnode("logs", "demo").stdout.replace(
        "\r", ""
    )
    assert kvnode("stop", "--all").returncode == 0


def test_a_machine_that_this_host_cannot_run_is_refused_by_name(kvnode: Command) -> None:
    done = kvnode("up", str(EXAMPLES / "vmi-demo.yaml"))
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if line.startswith("kvnode: ")]
    assert len(lines) == 1
    assert "spec.volumes[0]" in lines[0]
    assert "--image" in lines[0]
