"""VMs for the tests, and what a VM may leave behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Seconds that the emulated guest may take to boot on a busy machine.
BOOT_SECONDS = 180.0
#: Seconds that a start may take there: libvirt, which has not been asked before, asks every QEMU what it can do.
START_SECONDS = 300.0


def kernel_vmi(name: str, arguments: str = "", memory: str = "128Mi", **spec: Any) -> dict[str, Any]:
    """A VM that boots the demo guest's kernel directly; ``arguments`` are more of its command line."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name},
        "spec": {
            "domain": {
                "memory": {"guest": memory},
                "firmware": {
                    "kernelBoot": {
                        "kernelArgs": f"console=ttyS0 quiet panic=-1 {arguments}".strip(),
                        "container": {
                            "image": "kernel",
                            "kernelPath": "/vmlinuz",
                            "initrdPath": "/initrd.gz",
                        },
                    }
                },
                "devices": {"autoattachGraphicsDevice": False},
            },
            **spec,
        },
    }


def disk_vmi(name: str, volumes: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    """A VM with a virtio disk for each of ``volumes``."""
    disks = [{"name": volume["name"], "disk": {"bus": "virtio"}} for volume in volumes]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name},
        "spec": {
            "domain": {
                "memory": {"guest": "192Mi"},
                "devices": {"disks": disks, "autoattachGraphicsDevice": False},
            },
            "volumes": volumes,
            **spec,
        },
    }


def wait_until(condition: Callable[[], bool], timeout: float, what: str) -> None:
    """Wait for a condition; fails the test when it does not come true in time."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"not within {timeout:g} s: {what}"
        time.sleep(0.1)


def wait_for_text(log: Path, text: str, timeout: float = BOOT_SECONDS) -> str:
    """Wait until the guest's serial log holds ``text``; returns the log."""
    wait_until(
        lambda: log.is_file() and text in log.read_text(errors="replace"), timeout, f"{text!r} in {log}"
    )
    return log.read_text(errors="replace")


def mounts_below(path: Path) -> list[str]:
    """Mount points of this process's namespace under ``path``."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines if line.split()[4].startswith(str(path))]


def sockets_below(path: Path) -> list[Path]:
    """Sockets in the file system under ``path``."""
    return [entry for entry in path.rglob("*") if entry.is_socket()]


def alive(pid: int) -> bool:
    """Tell whether a process lives and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
