"""A VM's life on real libvirt and QEMU: up, seen, stopped; several at once; ends of every kind."""

from __future__ import annotations

import dataclasses
import json
import socket
import time
from pathlib import Path

import libvirt
import libvirt_qemu
import pytest

from kvnode.standalone.errors import EXIT_EXISTS, EXIT_NOT_FOUND
from kvnode.standalone.runner import Runner, StandaloneError, StartOptions
from tests.standalone.helpers import (
    BOOT_SECONDS,
    alive,
    kernel_vmi,
    mounts_below,
    sockets_below,
    wait_for_text,
    wait_until,
)

pytestmark = pytest.mark.integration

#: Seconds in which a guest shuts down however busy the machine is.
GRACE = 600


def test_a_guest_boots_is_seen_and_shuts_down_in_its_grace_period(
    runner: Runner, kernel: StartOptions, state_dir: Path
) -> None:
    steps: list[str] = []
    runner = Runner(state_dir, progress=lambda step, _text: steps.append(step))
    info = runner.start(kernel_vmi("life", terminationGracePeriodSeconds=GRACE), kernel)

    assert (info.phase, info.running, info.memory_bytes, info.vcpus) == ("Running", True, 128 << 20, 1)
    assert info.domain_type in {"kvm", "qemu"}
    assert info.domain_type_reason
    assert set(info.pids) == {"launcher-monitor", "launcher", "virtlogd", "virtqemud", "qemu"}
    assert steps == ["probe", "convert", "launch", "wait"]
    json.dumps(dataclasses.asdict(info))
    assert [vm.name for vm in runner.list_vms()] == ["life"]
    assert b"<name>default_life</name>" in runner.xml("life")
    assert b"<name>default_life</name>" in runner.xml("default/life", adapted=True)
    assert mounts_below(state_dir) == [], "mounts of a VM are seen in its own namespace alone"
    assert all(path.is_file() for path in runner.log_paths("life").values())

    wait_for_text(runner.log_paths("life")["serial"], "kvnode-guest: up after")
    pids = list(info.pids.values())
    result = runner.stop("life")
    assert (result.outcome, result.phase) == ("shutdown", "Succeeded")
    assert result.seconds < GRACE
    assert not any(alive(pid) for pid in pids)
    ended = runner.get("life")
    assert (ended.running, ended.phase, ended.reason, ended.pids) == (False, "Succeeded", "Stopped", {})
    assert sockets_below(state_dir) == []
    assert "kvnode-guest: up after" in runner.log_paths("life")["serial"].read_text(errors="replace")
    assert runner.stop("life").outcome == "not-running"

    runner.forget("life")
    assert runner.list_vms() == []
    with pytest.raises(StandaloneError) as error:
        runner.get("life")
    assert error.value.exit_code == EXIT_NOT_FOUND


def test_the_console_answers(runner: Runner, kernel: StartOptions) -> None:
    runner.start(kernel_vmi("console"), kernel)
    wait_for_text(runner.log_paths("console")["serial"], "kvnode-guest: up after")
    with socket.socket(socket.AF_UNIX) as console:
        console.settimeout(120)
        console.connect(str(runner.console_path("console")))
        console.sendall(b"\necho $((6 * 7))-said\n")
        heard = b""
        while b"42-said" not in heard:
            more = console.recv(4096)
            assert more, f"the console closed after {heard!r}"
            heard += more


def test_several_run_side_by_side_and_a_name_runs_once(runner: Runner, kernel: StartOptions) -> None:
    first = runner.start(kernel_vmi("twin"), kernel)
    second = runner.start(kernel_vmi("twin"), dataclasses.replace(kernel, namespace="other"))
    assert first.pids["qemu"] != second.pids["qemu"]
    with pytest.raises(StandaloneError, match="runs already") as error:
        runner.start(kernel_vmi("twin"), kernel)
    assert error.value.exit_code == EXIT_EXISTS
    with pytest.raises(StandaloneError, match="runs: stop it first"):
        runner.forget("default/twin")
    runner.stop("default/twin", now=True)
    assert {(vm.namespace, vm.running) for vm in runner.list_vms()} == {("default", False), ("other", True)}
    assert runner.start(kernel_vmi("twin"), kernel).running, "a name that has ended is free again"


def test_a_guest_that_powers_off_by_itself_has_succeeded(runner: Runner, kernel: StartOptions) -> None:
    runner.start(kernel_vmi("off", "kvnode.poweroff"), kernel)
    info = runner.wait("off", ("Succeeded",), BOOT_SECONDS)
    assert (info.phase, info.reason) == ("Succeeded", "GuestShutdown")
    wait_until(lambda: not runner.get("off").running, 120, "the launcher's end")


def test_a_guest_that_panics_has_failed(runner: Runner, kernel: StartOptions) -> None:
    vmi = kernel_vmi("panic")
    vmi["spec"]["domain"]["devices"]["panicDevices"] = [{"model": "isa"}]
    runner.start(vmi, kernel)
    connection = libvirt.open(runner.get("panic").libvirt_uri)
    try:
        domain = connection.lookupByName("default_panic")
        # What the pvpanic driver of a guest does when its kernel panics: 1 to port 0x505.
        libvirt_qemu.qemuMonitorCommand(
            domain, "o /b 0x505 1", libvirt_qemu.VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP
        )
    finally:
        connection.close()
    info = runner.wait("panic", ("Failed",), 120)
    assert (info.phase, info.reason, info.message) == ("Failed", "GuestPanicked", "the guest panicked")


def test_a_guest_deaf_to_its_power_button_is_destroyed_after_the_grace_period(
    runner: Runner, kernel: StartOptions
) -> None:
    # Nothing in this guest hears the button: it has no init.
    runner.start(kernel_vmi("deaf", "rdinit=/nothing panic=0", terminationGracePeriodSeconds=2), kernel)
    began = time.monotonic()
    result = runner.stop("deaf")
    assert (result.outcome, runner.get("deaf").reason) == ("destroyed", "Destroyed")
    assert time.monotonic() - began >= 2


def test_now_ends_a_guest_at_once(runner: Runner, kernel: StartOptions) -> None:
    runner.start(kernel_vmi("now", terminationGracePeriodSeconds=GRACE), kernel)
    result = runner.stop("now", now=True)
    assert result.outcome == "destroyed"
    assert result.seconds < GRACE


def test_a_guest_that_qemu_refuses_leaves_nothing(
    runner: Runner, kernel: StartOptions, state_dir: Path
) -> None:
    vmi = kernel_vmi("refused")
    vmi["spec"]["domain"]["cpu"] = {"model": "NoSuchModel"}
    with pytest.raises(StandaloneError, match="did not start"):
        runner.start(vmi, dataclasses.replace(kernel, acceleration="emulation"))
    info = runner.get("refused")
    assert (info.running, info.phase) == (False, "Failed")
    assert "NoSuchModel" in info.message
    assert "\n" not in info.message
    assert sockets_below(state_dir) == []


def test_a_start_that_is_interrupted_leaves_nothing(
    runner: Runner, kernel: StartOptions, state_dir: Path
) -> None:
    def interrupt(step: str, _text: str) -> None:
        if step == "wait":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Runner(state_dir, progress=interrupt).start(kernel_vmi("interrupted"), kernel)
    assert [vm.name for vm in runner.list_vms() if vm.name == "interrupted"] == []
    assert sockets_below(state_dir) == []
