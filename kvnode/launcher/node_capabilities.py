"""What libvirt and QEMU of this image can do on this node, as files that the agent makes labels of.

Names and content of the files are those of ``cmd/virt-launcher/node-labeller/node-labeller.sh``.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import libvirt

from kvnode.launcher import paths
from kvnode.launcher.daemons import Programs, driver_directory, write_configuration
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.log import logger

CAPABILITIES = "capabilities.xml"
DOMAIN_CAPABILITIES = "virsh_domcapabilities.xml"
SUPPORTED_FEATURES = "supported_features.xml"

#: Machine types that the capabilities are asked of, by architecture; nothing is asked on others.
_MACHINES = {"x86_64": "q35", "aarch64": "virt", "s390x": "s390-ccw-virtio"}
#: Architectures whose common CPU features libvirt can compute.
_WITH_BASELINE = ("x86_64", "s390x")
#: Those that each emulates for the other: architecture, machine type and file.
_CROSS = {
    "x86_64": ("aarch64", "virt", "virsh_domcapabilities_aarch64.xml"),
    "aarch64": ("x86_64", "q35", "virsh_domcapabilities_x86_64.xml"),
}
_KVM = Path("/dev/kvm")
_START_SECONDS = 60.0
_RETRY_SECONDS = 0.1


def write_capabilities(directory: Path) -> None:
    """Ask a libvirt daemon of this process's own, and write its answers to ``directory``.

    Raises:
        LauncherError: libvirt is not installed, does not start or does not answer what is needed.
        OSError: a file cannot be written.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return
    with _daemon() as uri, contextlib.closing(_open(uri)) as connection:
        try:
            for name, content in _files(connection, platform.machine(), machine).items():
                _write(directory / name, content)
        except libvirt.libvirtError as error:
            raise LauncherError("Capabilities", f"libvirt does not tell what it can do: {error}") from None


def _files(connection: libvirt.virConnect, architecture: str, machine: str) -> dict[str, str]:
    kind, domains = _domain_capabilities(connection, architecture, machine)
    files = {DOMAIN_CAPABILITIES: domains}
    if architecture in _WITH_BASELINE:
        cpu = host_model(domains)
        expand = libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
        features = connection.baselineHypervisorCPU(None, architecture, machine, kind, [cpu], expand)
        files[SUPPORTED_FEATURES] = features
    files[CAPABILITIES] = connection.getCapabilities()
    other = _CROSS.get(architecture)
    if other is not None:
        with contextlib.suppress(libvirt.libvirtError):  # no QEMU for it
            files[other[2]] = connection.getDomainCapabilities(None, other[0], other[1], "qemu", 0)
    return files


def _domain_capabilities(connection: libvirt.virConnect, architecture: str, machine: str) -> tuple[str, str]:
    """What kind of domains this node is good for, and what they can have."""
    if _KVM.exists():
        try:
            return "kvm", connection.getDomainCapabilities(None, architecture, machine, "kvm", 0)
        except libvirt.libvirtError as error:
            logger.warning("KVM is of no use here, the capabilities are those of emulation: %s", error)
    return "qemu", connection.getDomainCapabilities(None, architecture, machine, "qemu", 0)


def host_model(domain_capabilities: str) -> str:
    """The CPU that ``host-model`` stands for, as an element ``cpu``.

    Raises:
        LauncherError: the capabilities have none.
    """
    mode = ET.fromstring(domain_capabilities).find("cpu/mode[@name='host-model'][@supported='yes']")  # noqa: S314 - libvirt's own
    if mode is None:
        raise LauncherError("Capabilities", "libvirt's domain capabilities have no cpu mode host-model")
    cpu = ET.Element("cpu")
    cpu.extend(mode)
    return ET.tostring(cpu, encoding="unicode")


@contextlib.contextmanager
def _daemon() -> Iterator[str]:
    """A daemon of domains, for as long as the block takes; gives its URI."""
    programs = Programs.find()
    environment = dict(os.environ)
    if programs.config == "libvirtd.conf":
        drivers = driver_directory(Path("/run/libvirt-drivers"))
        if drivers is not None:
            environment["LIBVIRT_DRIVER_DIR"] = str(drivers)
    paths.LIBVIRT_CONFIG.mkdir(parents=True, exist_ok=True)
    write_configuration(programs, huge_pages=False)
    command = [programs.daemon, "-f", str(paths.LIBVIRT_CONFIG / programs.config)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            yield programs.uri
        finally:
            process.terminate()


def _open(uri: str) -> libvirt.virConnect:
    libvirt.registerErrorHandler(lambda *_: None, None)
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            return libvirt.open(uri)
        except libvirt.libvirtError as error:
            if time.monotonic() > end:
                raise LauncherError("LibvirtMissing", f"no libvirt daemon answers: {error}") from None
        time.sleep(_RETRY_SECONDS)


def _write(path: Path, content: str) -> None:
    """The agent may read it at any time: it is whole, or the one before."""
    staging = path.with_name(f".{path.name}.new")
    staging.write_text(content, encoding="utf-8")
    staging.rename(path)
