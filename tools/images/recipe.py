"""What is in which image."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2]
SUITE = "trixie"
"""The Debian release that all images are of."""
PREFIX = "/opt/kvnode"
"""The virtual environment in the images."""
REGISTRY = "docker.io"
"""What containerd puts before a name without a registry."""
QEMU = 107
"""User and group that QEMU runs as in a launcher pod (``pkg/util/util.go``)."""
KVM = 36

#: What Python code of every image needs.
_PYTHON = ("ca-certificates", "libsimdjson25", "python3")
LAUNCHER_PACKAGES = (
    *_PYTHON,
    "libvirt-daemon",
    "libvirt-daemon-driver-qemu",
    "ovmf",
    "passt",
    "qemu-system-x86",
    "qemu-utils",
    "swtpm",
    "swtpm-tools",
    "virtiofsd",
    "xorriso",
)
#: nft for the agent, openssl for the webhooks.
AGENT_PACKAGES = (*_PYTHON, "nftables", "openssl")
BUILDER_PACKAGES = (
    "ca-certificates",
    "g++",
    "libsimdjson-dev",
    "libvirt-dev",
    "pkg-config",
    "python3-dev",
    "python3-venv",
)

#: Programs of the environment that are in /usr/bin too: pods name them so.
LAUNCHER_PROGRAMS = (
    "kvnode",
    "virt-freezer",
    "virt-launcher",
    "virt-launcher-monitor",
    "virt-node-labeller",
    "virt-probe",
    "virt-tail",
)
AGENT_PROGRAMS = ("kvnode",)

#: Not for machines: 60 MiB.
EXCLUDED = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")

# Before the packages come, whose own users would take these numbers. Who runs as 107 without an entry in both files is
# turned away by libvirt; Debian's group kvm would get any number.
ACCOUNTS = (
    f'echo "qemu:x:{QEMU}:{QEMU}:qemu:/:/usr/sbin/nologin" >> "$1/etc/passwd"',
    f'printf "qemu:x:{QEMU}:\\nkvm:x:{KVM}:qemu\\n" >> "$1/etc/group"',
)
# The launcher writes these files itself where there are none. The firmware is where pods' flags say.
LAUNCHER_TOUCHES = (
    'rm -f "$1/etc/libvirt/qemu.conf" "$1/etc/libvirt/libvirtd.conf" "$1/etc/libvirt/virtlogd.conf"',
    'mkdir -p "$1/usr/share/edk2" && ln -s ../OVMF "$1/usr/share/edk2/ovmf"',
)


@dataclass(frozen=True)
class Recipe:
    """One image."""

    name: str
    references: tuple[str, ...]
    """All its names, with registry and tag."""
    packages: tuple[str, ...] = ()
    """Debian packages; none is an image without a root file system."""
    programs: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()
    """Shell commands over the root (``$1``), after the packages."""
    user: str = ""


def version() -> str:
    """The project's version, the images' tag."""
    return str(tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["version"])


def _references(*names: str) -> tuple[str, ...]:
    return tuple(f"{REGISTRY}/kvnode/{name}:{version()}" for name in names)


def recipes() -> tuple[Recipe, ...]:
    """All images."""
    guest = _references("demo-guest")
    return (
        Recipe("launcher", _references("launcher"), LAUNCHER_PACKAGES, LAUNCHER_PROGRAMS, LAUNCHER_TOUCHES),
        Recipe("agent", _references("agent", "controller", "webhook"), AGENT_PACKAGES, AGENT_PROGRAMS),
        # VMIs name it with the tag `latest` too, as they do in examples.
        Recipe("demo-guest", (*guest, f"{guest[0].rpartition(':')[0]}:latest"), user=f"{QEMU}:{QEMU}"),
    )
