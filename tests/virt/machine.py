"""A guest that really runs: a VMI converted, adapted, given to libvirt, and talked to on its console."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import libvirt

import kvnode
from kvnode.launcher import paths
from kvnode.virt.adapt import adapt
from tests.conftest import Guest
from tests.fast.helpers import merged
from tests.virt.daemon import LibvirtHost

#: Seconds that an emulated guest may take to boot on a busy machine.
BOOT_SECONDS = 180.0
COMMAND_SECONDS = 120.0

FIRMWARE = "/usr/share/OVMF"
CONTEXT: dict[str, Any] = {
    "architecture": "amd64",
    "kvmAvailable": False,
    "allowEmulation": True,
    "serialConsoleLog": True,
    "memBalloonStatsPeriod": 10,
    "smbios": {"manufacturer": "KubeVirt", "product": "None", "family": "KubeVirt"},
    "efi": {
        "code": f"{FIRMWARE}/OVMF_CODE_4M.fd",
        "vars": f"{FIRMWARE}/OVMF_VARS_4M.fd",
        "secureLoader": False,
    },
    "domainAttachmentByInterface": {"default": "tap"},
}
CONFIG = {
    "architectureConfiguration": {"amd64": {"emulatedMachines": ["q35*", "pc*"]}},
    "developerConfiguration": {
        "featureGates": [
            "HostDisk",
            "PanicDevices",
            "DownwardMetrics",
            "ExperimentalIgnitionSupport",
            "VSOCK",
        ]
    },
}


class Machine:
    """One running guest; its kernel is booted directly, with an initrd that says what it sees."""

    def __init__(
        self,
        host: LibvirtHost,
        guest: Guest,
        name: str,
        fragment: Mapping[str, Any],
        image: Path | None = None,
        **context: Any,
    ) -> None:
        """Start the guest of a VMI of which ``fragment`` tells the interesting part, and wait until it is up.

        Keywords are keys of the converter context, laid over `CONTEXT`. Disk images are made where the domain
        names them; the first is a copy of ``image``.
        """
        self.host = host
        self.vmi = kvnode.apply_defaults(merged(_kernel_vmi(name), fragment), "amd64", CONFIG)
        assert kvnode.validate(self.vmi, "amd64", CONFIG) == []
        xml = kvnode.convert(self.vmi, merged(CONTEXT, context))
        self.xml = adapt(xml, host.versions.libvirt, standalone=True).xml
        self.directory = host.path(str(paths.PRIVATE / self.vmi["metadata"]["uid"]))
        self._prepare(guest, image)
        self.domain: libvirt.virDomain = host.raw.defineXML(self.xml)
        self._console: socket.socket | None = None
        try:
            self.domain.create()
            self._wait_until_up()
        except BaseException:
            self.close()
            raise

    def log(self) -> str:
        """What the guest wrote on its serial port."""
        file = self.directory / "virt-serial0-log"
        return file.read_text(errors="replace") if file.exists() else ""

    def run(self, command: str) -> str:
        """Run a shell command in the guest; its output, without what the guest's start still says."""
        if self._console is None:
            self._console = socket.socket(socket.AF_UNIX)
            self._console.settimeout(COMMAND_SECONDS)
            self._console.connect(str(self.directory / "virt-serial0"))
        self._console.sendall(f'\nstty -echo; echo be"gin"; {command}; echo en"ded"\n'.encode())
        heard = b""
        while b"ended\r\n" not in heard:
            more = self._console.recv(4096)
            assert more, f"the console closed after {heard!r}"
            heard += more
        text = heard.decode(errors="replace").replace("\r\n", "\n")
        output = text[text.rindex("begin\n") + len("begin\n") : text.rindex("ended\n")]
        return "\n".join(line for line in output.split("\n") if not line.startswith("kvnode-guest:")).strip()

    def close(self) -> None:
        """End the guest and forget it."""
        if self._console is not None:
            self._console.close()
        if self.domain.isActive():
            self.domain.destroy()
        self.domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_NVRAM)

    def _prepare(self, guest: Guest, image: Path | None) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        domain = ET.fromstring(self.xml)
        for tag, file in (("kernel", guest.kernel), ("initrd", guest.initrd)):
            inside = domain.findtext(f"os/{tag}")
            target = self.host.path(inside or "")
            if inside and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        for channel in domain.iterfind("devices/channel/source[@path]"):
            self.host.path(channel.attrib["path"]).parent.mkdir(parents=True, exist_ok=True)
        for disk in domain.iterfind("devices/disk"):
            source, driver = disk.find("source"), disk.find("driver")
            if source is not None and driver is not None and source.get("file"):
                _make_image(self.host.path(source.attrib["file"]), driver.get("type", "raw"), image)
                image = None

    def _wait_until_up(self) -> None:
        end = time.monotonic() + BOOT_SECONDS
        while "kvnode-guest: up after" not in self.log():
            assert self.domain.isActive(), f"the guest ended: {self.log()[-2000:]}"
            assert time.monotonic() < end, f"not up within {BOOT_SECONDS:g} s: {self.log()[-2000:]}"
            time.sleep(0.05)


def _kernel_vmi(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "namespace": "boot", "uid": str(uuid.uuid4())},
        "spec": {
            "domain": {
                "memory": {"guest": "128Mi"},
                "cpu": {"model": "qemu64"},
                "firmware": {
                    "kernelBoot": {
                        "kernelArgs": "console=ttyS0 quiet panic=-1",
                        "container": {
                            "image": "kernel",
                            "kernelPath": "/vmlinuz",
                            "initrdPath": "/initrd.gz",
                        },
                    }
                },
                "devices": {
                    "autoattachGraphicsDevice": False,
                    "interfaces": [{"name": "default", "masquerade": {}}],
                },
            },
            "networks": [{"name": "default", "pod": {}}],
        },
    }


def _make_image(path: Path, kind: str, copy_of: Path | None) -> None:
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if copy_of is not None:
        shutil.copyfile(copy_of, path)
        return
    subprocess.run(["qemu-img", "create", "-q", "-f", kind, str(path), "8M"], check=True, capture_output=True)


def assert_matches(pattern: str, text: str) -> None:
    """Fail with the text when the pattern is not found in it."""
    assert re.search(pattern, text, re.MULTILINE), f"{pattern!r} is not in {text!r}"
