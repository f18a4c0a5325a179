"""Where a node agent finds what it works with (``cmd/virt-handler/virt-handler.go:94-121,265-333``)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Settings:
    """Of one agent; the paths are as its own container has them."""

    node: str
    """Name of the node."""
    pods: Path = Path("/pods")
    """kubelet's folder of pods."""
    private: Path = Path("/var/run/kubevirt-private")
    """Records that outlive the agent; it must be the node's, not the container's."""
    capabilities: Path = Path("/var/lib/kubevirt-node-labeller")
    """What libvirt said of the node."""
    device_plugins: Path = Path("/var/lib/kubelet/device-plugins")
    """kubelet's folder of device plugins."""
    devices: Path = Path("/dev")
    """The node's devices."""
    sysfs: Path = Path("/sys")
    """What the node's kernel says of them."""
    address: str = "0.0.0.0"  # noqa: S104  (Prometheus and kubelet come from outside)
    port: int = 8185
    """Of metrics, health and the page; 0 takes any."""
    max_devices: int = 1000
    """How many VMs may have a device at once."""
    workers: int = 10
    """VMIs that are worked on side by side, not counting those that are waited for (`main.HANGING`)."""


def host_architecture() -> str:
    """This machine's, by Kubernetes' name."""
    machine = os.uname().machine
    return _ARCHITECTURES.get(machine, machine)
