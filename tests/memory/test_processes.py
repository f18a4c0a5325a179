"""Which process is what."""

from __future__ import annotations

import os

import pytest

from kvnode.memory.processes import ROLES, VmProcess, by_role, in_namespaces_of, role_of


@pytest.mark.parametrize(
    ("command", "role"),
    [
        (
            "/usr/bin/python3 -I -S /opt/kvnode/launcher/monitor.py -- python3 -m kvnode.launcher",
            "launcher-monitor",
        ),
        ("/usr/bin/python3.12 -P -m kvnode.launcher --name a", "launcher"),
        ("/usr/bin/virt-launcher --name a", "launcher"),
        ("/usr/bin/python3 /usr/bin/virt-launcher --name a", "launcher"),
        ("/opt/bin/python -P /opt/bin/virt-launcher --name qemu-kvm", "launcher"),
        ("/usr/bin/python3 /usr/bin/virt-tail --logfile virt-launcher", "other"),
        ("/usr/sbin/libvirtd -f /etc/libvirt/libvirtd.conf", "virtqemud"),
        ("/usr/sbin/virtqemud", "virtqemud"),
        ("/usr/sbin/virtlogd", "virtlogd"),
        ("/usr/bin/qemu-system-x86_64 -name guest=python", "qemu"),
        ("/usr/libexec/qemu-kvm -name x", "qemu"),
        ("/usr/bin/swtpm socket", "swtpm"),
        ("/usr/libexec/virtiofsd --fd 3", "virtiofsd"),
        ("python3 -c import kvnode.launcher", "other"),
        ("vi kvnode/launcher/monitor.py", "other"),
        ("bash", "other"),
    ],
)
def test_a_command_line_has_a_role(command: str, role: str) -> None:
    assert role_of(command.split(" ")) == role
    assert role in ROLES


def test_no_command_line_is_no_role() -> None:
    assert role_of([]) == "other"


def test_the_lowest_process_of_a_role_stands_for_it() -> None:
    processes = [VmProcess(9, "qemu", "q"), VmProcess(5, "launcher", "l"), VmProcess(7, "qemu", "q")]
    assert by_role([*processes, VmProcess(3, "other", "sh")]) == {"launcher": 5, "qemu": 7}


def test_this_process_is_in_its_own_namespace() -> None:
    assert os.getpid() in {process.pid for process in in_namespaces_of(os.getpid())}


def test_a_process_that_is_gone_has_no_company() -> None:
    assert list(in_namespaces_of(2**22 + 1)) == []
