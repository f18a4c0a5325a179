"""The launcher's command line, as the pod's template writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvnode.launcher.pod.options import PodOptions
from kvnode.launcher.programs.flags import FlagError
from kvnode.spec.pod import render_launcher_pod

REQUIRED = ["--name", "vm", "--namespace", "ns", "--uid", "u-1"]


def test_what_is_not_said() -> None:
    options = PodOptions.read(REQUIRED)
    assert (options.qemu_timeout, options.grace_seconds, options.nonroot) == (180, 30, False)
    assert options.sockets == Path("/var/run/kubevirt/sockets")
    assert options.qemu_pid_file == Path("/var/run/libvirt/qemu/ns_vm.pid")
    assert options.qemu_log == Path("/var/log/libvirt/qemu/ns_vm.log")
    assert (options.intervals.freeze, options.intervals.users) == (5, 10)


def test_without_root_libvirt_keeps_its_files_elsewhere() -> None:
    options = PodOptions.read([*REQUIRED, "--run-as-nonroot"])
    assert options.qemu_pid_file == Path("/var/run/libvirt/qemu/run/ns_vm.pid")
    assert options.qemu_log == Path("/var/run/kubevirt-private/libvirt/qemu/log/ns_vm.log")
    assert options.manager.nonroot


def test_the_command_of_a_rendered_pod_is_read() -> None:
    vmi = {
        "metadata": {"name": "vm", "namespace": "ns", "uid": "u-1"},
        "spec": {
            "domain": {"devices": {}, "memory": {"guest": "64Mi"}},
            "terminationGracePeriodSeconds": 20,
        },
    }
    pod = render_launcher_pod(vmi, "amd64")
    command = next(c for c in pod["spec"]["containers"] if c["name"] == "compute")["command"]
    assert command[0] == "/usr/bin/virt-launcher-monitor"
    options = PodOptions.read(command[1:])
    assert options.subject.domain == "ns_vm"
    assert options.grace_seconds == 20 + 15
    assert 240 <= options.qemu_timeout < 360


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ([], "--name: must be the VMI's, is ''"),
        ([*REQUIRED, "--name", "../x"], "--name"),
        ([*REQUIRED, "--uid", ".."], "--uid"),
        ([*REQUIRED, "--grace-period-seconds", "soon"], "--grace-period-seconds: must be a whole number"),
        ([*REQUIRED, "--qemu-agent-user-interval", "0s"], "--qemu-agent-user-interval"),
        ([*REQUIRED, "--colour"], "unknown flag --colour"),
    ],
)
def test_what_cannot_be_read_is_named(flags: list[str], complaint: str) -> None:
    with pytest.raises(FlagError, match=complaint):
        PodOptions.read(flags)
