"""The converter's context for the node that the launcher runs on: what the VMI, the agent's options and the
node's files say (``pkg/virt-launcher/virtwrap/manager.go:1150``).
"""

from __future__ import annotations

import json
import os
import platform
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvnode.launcher import efi_files, paths, resource_claims
from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.rpc.cmd_v1_pb2 import Topology, VirtualMachineOptions

#: Seconds of processor time that qemu-img may take to look at an image.
IMAGE_SECONDS = 10

NETWORK_INFO = Path("/etc/podinfo/network-info")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "s390x": "s390x"}
_CPUSETS = (Path("/sys/fs/cgroup/cpuset.cpus.effective"), Path("/sys/fs/cgroup/cpuset/cpuset.cpus"))
_NO_FREE_PAGE_REPORTING = "kubevirt.io/free-page-reporting-disabled"
_NO_OPTIONS = VirtualMachineOptions()


@dataclass
class ContextBuilder:
    """Builds contexts; what it found out about images it keeps, as they do not change."""

    options: ManagerOptions
    _images: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def build(self, vmi: Instance, asked: VirtualMachineOptions | None) -> dict[str, Any]:
        """The context for :func:`kvnode.converter.convert`. Blocks while images are looked at.

        Raises:
            ManagerError: an image of a container disk cannot be used, or the firmware is not there.
        """
        asked = asked or _NO_OPTIONS
        hotplug = {name: entry for name, entry in vmi.volume_status.items() if "hotplugVolume" in entry}
        permanent = {name: entry for name, entry in vmi.volume_status.items() if name not in hotplug}
        claims, data_volumes = block_volumes(vmi, hotplug)
        cluster = asked.clusterConfig
        context: dict[str, Any] = {
            "architecture": architecture_of(self.options, vmi),
            "kvmAvailable": self.options.has_kvm,
            "allowEmulation": self.options.allow_emulation,
            "cpuSet": pod_cpus(),
            "isBlockPVC": claims,
            "isBlockDV": data_volumes,
            "hotplugVolumes": hotplug,
            "permanentVolumes": permanent,
            "disksInfo": self._container_disks(vmi),
            "freePageReporting": _free_page_reporting(vmi, cluster.FreePageReportingDisabled),
            "serialConsoleLog": _serial_console_log(vmi, cluster.SerialConsoleLogDisabled),
            "bochsForEFIGuests": cluster.BochsDisplayForEFIGuests,
            "pciNUMAAwareTopology": cluster.PCINUMAAwareTopologyEnabled,
            "memBalloonStatsPeriod": asked.MemBalloonStatsPeriod,
            "volumesDiscardIgnore": list(asked.PreallocatedVolumes),
            "domainAttachmentByInterface": dict(asked.interfaceDomainAttachment),
            "env": dict(os.environ),
        }
        if asked.HasField("VirtualMachineSMBios"):
            bios = asked.VirtualMachineSMBios
            names = ("manufacturer", "product", "version", "sku", "family")
            context["smbios"] = {name: getattr(bios, name) for name in names if getattr(bios, name)}
        if asked.HasField("topology"):
            context["topology"] = topology_of(asked.topology)
        claimed = resource_claims.allocated(vmi)
        if claimed:
            context["resourceClaims"] = claimed
        efi = efi_files.efi(vmi, self.options, context["architecture"])
        if efi is not None:
            context["efi"] = efi
        info = _read(NETWORK_INFO)
        if info:
            context["networkInfo"] = _json_or_none(info)
        return context

    def _container_disks(self, vmi: Instance) -> dict[str, Mapping[str, Any]]:
        """What is in the VMI's container disks, by volume."""
        found = {}
        for index, volume in enumerate(vmi.spec.get("volumes") or []):
            if not volume.get("containerDisk"):
                continue
            name = volume["name"]
            if name not in self._images:
                try:
                    self._images[name] = _usable(
                        image_info(paths.container_disk(index), self.options.disk_memory_limit)
                    )
                except ManagerError as error:
                    raise ManagerError(f"volume {name}: container disk: {error}") from None
            found[name] = self._images[name]
        return found


def architecture_of(options: ManagerOptions, vmi: Instance | None) -> str:
    """Kubernetes' name of the guest's architecture: this machine's, unless another may be emulated."""
    own = _ARCHITECTURES.get(platform.machine(), "amd64")
    asked = "" if vmi is None else str(vmi.spec.get("architecture") or "")
    return asked if options.allow_cross_arch_emulation and asked else own


def image_info(image: Path, memory_limit: int) -> Mapping[str, Any]:
    """What ``qemu-img info`` says of an image that a user made; raises ManagerError.

    The tool is held to ten seconds of processor time and ``memory_limit`` bytes of address space: an image can
    be made to take any amount of either.
    """
    limits = f'ulimit -t {IMAGE_SECONDS} && ulimit -v {memory_limit >> 10} && exec qemu-img info --output=json -- "$1"'
    try:
        kind = image.stat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISBLK(kind)):  # a pipe would be waited for
            raise ManagerError(f"{image} is neither a file nor a block device")
        done = subprocess.run(
            ["/bin/sh", "-c", limits, "qemu-img", str(image)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=6 * IMAGE_SECONDS,
            check=False,
            cwd="/",
        )
        found = json.loads(done.stdout) if done.returncode == 0 else None
    except subprocess.TimeoutExpired:
        raise ManagerError(f"qemu-img has not told in {6 * IMAGE_SECONDS:g} s what {image} is") from None
    except OSError as error:
        raise ManagerError(f"{error.filename or 'qemu-img'}: {error.strerror}") from None
    except ValueError as error:
        raise ManagerError(f"qemu-img does not tell what {image} is: {error}") from None
    if not isinstance(found, dict):
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"]
        raise ManagerError(lines[-1].removeprefix("qemu-img: "))
    return found


def _usable(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """The image's description, if a guest may have it: an image must not name other files of this pod."""
    kind = info.get("format")
    if kind not in ("qcow2", "raw"):
        raise ManagerError(f"the image must be qcow2 or raw, is {kind}")
    for name in ("backing-filename", "full-backing-filename", "data-file"):
        if info.get(name):
            raise ManagerError(f"the image must stand alone, and has a {name} {info[name]}")
    specific = (info.get("format-specific") or {}).get("data") or {}
    if specific.get("data-file"):
        raise ManagerError(f"the image must stand alone, and has a data file {specific['data-file']}")
    return info


def block_volumes(vmi: Instance, hotplug: Mapping[str, object]) -> tuple[dict[str, bool], dict[str, bool]]:
    """Which claims and which data volumes of the VMI are block devices, by volume: the pod's files tell."""
    claims, data_volumes = {}, {}
    for volume in vmi.spec.get("volumes") or []:
        name = volume["name"]
        device = paths.HOTPLUG_DISKS / name if name in hotplug else Path("/dev") / name
        if "persistentVolumeClaim" in volume or "ephemeral" in volume:
            claims[name] = _is_device(device)
        elif "dataVolume" in volume:
            data_volumes[name] = _is_device(device)
    return claims, data_volumes


def _is_device(path: Path) -> bool:
    try:
        return path.is_block_device() or path.is_char_device()
    except OSError:
        return False


def pod_cpus() -> list[int]:
    """The host CPUs that this pod may use: its cgroup's, or this process's where the cgroup tells none."""
    for path in _CPUSETS:
        cpus = parse_cpus(_read(path) or "")
        if cpus:
            return cpus
    return sorted(os.sched_getaffinity(0))


def parse_cpus(text: str) -> list[int]:
    """Numbers out of a list such as ``0-3,8`` (cpuset(7)); what is no number is passed over."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return sorted(found)


def topology_of(topology: Topology) -> dict[str, Any]:
    """The host's NUMA cells as the converter reads them."""
    return {
        "numa_cells": [
            {
                "id": cell.id,
                "memory": {"amount": cell.memory.amount, "unit": cell.memory.unit},
                "pages": [{"count": page.count, "unit": page.unit, "size": page.size} for page in cell.pages],
                "distances": [{"id": other.id, "value": other.value} for other in cell.distances],
                "cpus": [{"id": cpu.id, "siblings": list(cpu.siblings)} for cpu in cell.cpus],
            }
            for cell in topology.numa_cells
        ]
    }


def _free_page_reporting(vmi: Instance, disabled: bool) -> bool:
    """``pkg/virt-launcher/virtwrap/manager.go:1365``."""
    memory = vmi.domain.get("memory") or {}
    exact = vmi.dedicated_cpus or "realtime" in vmi.cpu or "hugepages" in memory
    no_balloon = vmi.devices.get("autoattachMemBalloon") is False
    return not (disabled or exact or no_balloon or vmi.annotations.get(_NO_FREE_PAGE_REPORTING) == "true")


def _serial_console_log(vmi: Instance, disabled: bool) -> bool:
    asked = vmi.devices.get("logSerialConsole")
    return not disabled if asked is None else bool(asked)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
