"""up, ps, logs, xml, stop, memory and top, over a stand-in for standalone mode."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvnode.cli import exitcodes, options, serial
from kvnode.cli.ps import age
from kvnode.standalone.errors import EXIT_EXISTS, StandaloneError
from kvnode.standalone.model import VmInfo
from tests.cli.conftest import Kvnode
from tests.cli.fakes import MIB, REPORT, VM, FakeRunner

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO, MACHINE = str(EXAMPLES / "vmi-demo.yaml"), str(EXAMPLES / "vm-demo.yaml")


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    fake = FakeRunner()
    monkeypatch.setattr(options, "runner", lambda *_arguments, **_options: fake)
    return fake


# --- up -------------------------------------------------------------------------------------------


def test_up_starts_what_the_manifest_says(kvnode: Kvnode, runner: FakeRunner) -> None:
    result = kvnode("up", DEMO, "--image", "system=/images/a=b.qcow2", "--name", "other", "--timeout", "9")
    ((verb, name, start),) = runner.calls
    assert (verb, name, start.name, start.timeout, start.wait) == ("start", "demo", "other", 9.0, True)
    assert start.images == {"system": Path("/images/a=b.qcow2")}
    assert result.code == 0
    assert result.out.splitlines() == [
        "default/demo is Running: 2 vCPU, 256.0 MiB, software emulation (KVM does not work here)",
        "  note: the network is QEMU's user networking",
    ]


def test_up_for_programs(kvnode: Kvnode, runner: FakeRunner) -> None:
    (entry,) = json.loads(kvnode("up", DEMO, "-o", "json").out)
    assert entry["name"] == "demo"
    assert runner.calls[0][0] == "start"


@pytest.mark.usefixtures("runner")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([DEMO, "--image", "system"], "'system' must be NAME=FILE"),
        ([DEMO, "--image", "a=1", "--image", "a=2"], "a is given twice"),
        ([DEMO, MACHINE, "--name", "x"], "--name and --console are for one machine, and 2 are given"),
        ([DEMO, "--no-wait", "--console"], "--no-wait does not go with"),
        ([DEMO, "--timeout", "0"], "0.0 is not in the range"),
        ([], "Missing argument 'FILE...'"),
    ],
)
def test_up_refuses_what_cannot_be(kvnode: Kvnode, arguments: list[str], said: str) -> None:
    result = kvnode("up", *arguments)
    assert result.code == exitcodes.USAGE
    assert said in result.err
    assert len(result.lines) == 1


def test_up_goes_on_behind_one_that_fails_and_exits_with_its_code(kvnode: Kvnode, runner: FakeRunner) -> None:
    def start(manifest: Mapping[str, Any]) -> VmInfo:
        if manifest["metadata"]["name"] == "demo":
            raise StandaloneError("is running already", exit_code=EXIT_EXISTS, field="metadata.name")
        return replace(VM, name="demo-vm")

    runner.on_start = start
    result = kvnode("up", DEMO, MACHINE)
    assert result.code == exitcodes.EXISTS
    assert result.lines == [f"kvnode: {DEMO}: metadata.name: is running already"]
    assert result.out.startswith("default/demo-vm is Running")


def test_up_waits_for_a_text(kvnode: Kvnode, runner: FakeRunner, tmp_path: Path) -> None:
    runner.serial = tmp_path / "serial.log"
    runner.serial.write_bytes(b"booting\nkvnode-gu")

    def write_the_rest() -> None:
        time.sleep(0.3)
        with (tmp_path / "serial.log").open("ab") as file:
            file.write(b"est: up after 2 s\n")

    writer = threading.Thread(target=write_the_rest)
    writer.start()
    result = kvnode("up", DEMO, "--wait-for", "kvnode-guest: up")
    writer.join()
    assert result.code == 0
    assert runner.vms[0].running


def test_up_ends_a_machine_whose_text_does_not_come(
    kvnode: Kvnode, runner: FakeRunner, tmp_path: Path
) -> None:
    runner.serial = tmp_path / "serial.log"
    result = kvnode("up", DEMO, "--wait-for", "never", "--timeout", "0.3")
    assert result.code == exitcodes.FAILED
    assert result.lines[-1] == (
        f"kvnode: {DEMO}: 0.3 seconds went by before 'never' came on the serial console"
    )
    assert runner.calls[-1] == ("stop", "default/demo", True, None)


def test_up_says_so_when_the_machine_ends_first(kvnode: Kvnode, runner: FakeRunner, tmp_path: Path) -> None:
    runner.serial = tmp_path / "serial.log"
    runner.on_start = lambda _: replace(VM, running=False)
    result = kvnode("up", DEMO, "--wait-for", "never")
    assert "the machine ended before 'never' came" in result.err


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Signals that do what they do to a command, whatever other tests in this process made of them."""
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        before[number] = signal.signal(number, handler)
    yield
    for number, earlier in before.items():
        signal.signal(number, earlier)


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_while_waiting_leaves_nothing(
    kvnode: Kvnode,
    runner: FakeRunner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    runner.serial = tmp_path / "serial.log"
    # Not time.sleep itself, which other threads of this process call too.
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: signal.raise_signal(number))
    monkeypatch.setattr(serial, "time", clock)
    assert kvnode("up", DEMO, "--wait-for", "never").code == exitcodes.INTERRUPTED
    assert not runner.vms[0].running
    assert runner.calls[-1] == ("forget", "default/demo")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


# --- ps -------------------------------------------------------------------------------------------


def test_ps_is_a_table(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms = [
        VM,
        replace(VM, name="old", phase="Failed", running=False, pid=None, message="it\x1b[2J\nbroke"),
    ]
    lines = kvnode("ps").out.splitlines()
    assert lines[0].split() == [
        "NAMESPACE",
        "NAME",
        "PHASE",
        "AGE",
        "VCPUS",
        "MEMORY",
        "TYPE",
        "PID",
        "MESSAGE",
    ]
    assert lines[1].split()[:3] == ["default", "demo", "Running"]
    assert lines[2].endswith("-  it\\x1b[2J broke")
    assert kvnode("ps", "--running", "--quiet").out == "default/demo\n"


def test_ps_for_programs(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms = [VM]
    assert json.loads(kvnode("ps", "-o", "json").out)[0]["vcpus"] == 2
    assert "- namespace: default" in kvnode("ps", "-o", "yaml").out


@pytest.mark.usefixtures("runner")
def test_ps_of_nothing(kvnode: Kvnode) -> None:
    result = kvnode("ps")
    assert (result.code, result.out) == (0, "")
    assert "kvnode up vm.yaml" in result.err
    assert kvnode("ps", "-o", "json").out == "[]\n"


@pytest.mark.parametrize(
    ("since", "text"),
    [
        ("2026-01-01T00:00:00Z", "3d"),
        ("2026-01-03T21:00:00Z", "3h"),
        ("2026-01-03T23:57:30Z", "2m"),
        ("2026-01-03T23:58:30Z", "90s"),
        ("2026-01-05T00:00:00Z", "0s"),
        ("", "-"),
        ("soon", "-"),
    ],
)
def test_age(since: str, text: str) -> None:
    assert age(since, datetime(2026, 1, 4, tzinfo=UTC)) == text


# --- logs and xml ---------------------------------------------------------------------------------


def test_logs_are_printed_as_they_are(kvnode: Kvnode, runner: FakeRunner, tmp_path: Path) -> None:
    runner.vms = [VM]
    runner.serial = tmp_path / "serial.log"
    runner.serial.write_text("one\ntwo\n")
    assert kvnode("logs", "demo").out == "one\ntwo\n"


def test_logs_followed_end_with_the_machine(kvnode: Kvnode, runner: FakeRunner, tmp_path: Path) -> None:
    runner.vms = [replace(VM, running=False)]
    runner.serial = tmp_path / "serial.log"
    runner.serial.write_text("last words\n")
    assert kvnode("logs", "-f", "demo").out == "last words\n"


def test_a_log_that_is_not_there(kvnode: Kvnode, runner: FakeRunner, tmp_path: Path) -> None:
    runner.vms = [VM]
    runner.serial = tmp_path / "serial.log"
    runner.serial.write_text("")
    result = kvnode("logs", "demo", "--source", "qemu")
    assert result.code == exitcodes.NOT_FOUND
    assert result.lines == ["kvnode: demo has no qemu log (it has: serial)"]


def test_xml_as_converted_and_as_adapted(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms = [VM]
    assert kvnode("xml", "demo").out == "<domain><name>default_demo</name></domain>\n"
    assert kvnode("xml", "--adapted", "demo").out.startswith("<adapted>")
    assert kvnode("xml", "--indent", "demo").out == "<domain>\n  <name>default_demo</name>\n</domain>\n"


@pytest.mark.usefixtures("runner")
@pytest.mark.parametrize("verb", ["logs", "console", "xml", "memory", "stop"])
def test_an_unknown_machine_has_an_exit_code_of_its_own(kvnode: Kvnode, verb: str) -> None:
    result = kvnode(verb, "ghost")
    assert (result.code, result.lines) == (exitcodes.NOT_FOUND, ["kvnode: there is no VM 'ghost'"])


# --- stop -----------------------------------------------------------------------------------------


def test_stop_tells_how_it_went(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms = [VM]
    result = kvnode("stop", "demo", "--timeout", "5", "--forget")
    assert (result.code, result.out) == (0, "default/demo shut down after 1.2 s\n")
    assert runner.calls == [("stop", "demo", False, 5.0), ("forget", "demo")]


def test_stop_all_now(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms = [VM, replace(VM, name="two"), replace(VM, name="ended", running=False)]
    result = kvnode("stop", "--all", "--now", "-o", "json")
    assert [entry["name"] for entry in json.loads(result.out)] == ["demo", "two"]
    assert runner.calls == [("stop", "default/demo", True, None), ("stop", "default/two", True, None)]


def test_stop_goes_on_behind_one_that_is_unknown(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms = [VM]
    result = kvnode("stop", "ghost", "demo")
    assert result.code == exitcodes.NOT_FOUND
    assert result.out.startswith("default/demo shut down")


@pytest.mark.usefixtures("runner")
@pytest.mark.parametrize("arguments", [[], ["demo", "--all"]])
def test_stop_wants_names_or_all(kvnode: Kvnode, arguments: list[str]) -> None:
    assert kvnode("stop", *arguments).code == exitcodes.USAGE


# --- memory and top -------------------------------------------------------------------------------


def test_memory_is_a_report(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms = [VM]
    out = kvnode("memory", "demo").out
    assert "guest memory: 100.0 MiB of 256.0 MiB in use (memfd)" in out
    rows = {line.split("  ")[0]: line.split() for line in out.splitlines()}
    assert rows["qemu"][-3:] == ["38.0", "MiB", "over"]
    assert rows["other: dnsmasq"][-3:] == ["-", "no", "share"]
    assert rows["total"] == ["total", "122.0", "MiB", "138.0", "MiB", "within"]
    assert "headroom: 16.0 MiB" in out
    assert "requested for no process seen here: video 32.0 MiB" in out


def test_memory_that_is_overrun(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms, runner.report = [VM], replace(REPORT, headroom=-3 * MIB, verdict="over", unassigned=())
    assert "overrun: 3.0 MiB over what the formula requests" in kvnode("memory", "demo").out


def test_memory_for_programs(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms = [VM]
    report = json.loads(kvnode("memory", "demo", "-o", "json").out)
    assert (report["headroom"], report["processes"][1]["role"]) == (16 * MIB, "qemu")


def test_top_without_a_terminal_is_printed_once(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms = [VM]
    out = kvnode("top", "--processes").out
    assert out.splitlines()[1].split()[:4] == ["default", "demo", "Running", "-"]
    assert "\n\ndefault/demo" in out


def test_top_for_programs_is_a_line_a_refresh(kvnode: Kvnode, runner: FakeRunner) -> None:
    runner.vms = [VM]
    lines = kvnode("top", "-o", "json", "-n", "2", "-d", "0.1").out.splitlines()
    first, second = (json.loads(line)[0] for line in lines)
    assert first["cpu"] is None
    assert second["cpu"] == 0.0
    assert second["memory"]["headroom"] == 16 * MIB
