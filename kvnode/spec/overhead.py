"""Memory that a VM's pod needs beside its guest's: what it is for, term by term.

``pkg/hypervisor/kvm/hypervisorbackend.go:69-209``; for networks ``pkg/network/resources/memory.go``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.spec.config import ClusterConfig
from kvnode.spec.fields import get_mapping, get_quantity
from kvnode.spec.normal import normal_instance

MIB = 2**20

LAUNCHER_MONITOR = 25 * MIB
LAUNCHER = 100 * MIB
VIRTLOGD = 25 * MIB
VIRTQEMUD = 40 * MIB
QEMU = 30 * MIB
PER_VCPU = 8 * MIB
IO_THREAD = 8 * MIB
VIDEO = 32 * MIB
ARM64_FIRMWARE = 128 * MIB
VFIO = 1024 * MIB
DOWNWARD_METRICS = 1 * MIB
PER_EXEC_PROBE = 10 * MIB
ANY_EXEC_PROBE = 100 * MIB
MEMORY_ENCRYPTION = 256 * MIB
TPM = 53 * MIB
GUARANTEED = 100 * MIB
PASST = 250 * MIB

_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_DOMAIN = "spec.domain."


@dataclass(frozen=True, slots=True)
class Term:
    """One part of the memory overhead."""

    name: str
    """What it is for, a stable name: ``launcher``, ``qemu``, ``page-tables``, ``vcpus`` …"""

    bytes: int
    """How much; negative only where a ratio below one takes some off."""

    reason: str
    """Why it is counted, for people."""

    field: str = ""
    """Path of the field that it comes from; "": it is always there, or comes from the configuration."""


def memory_overhead(
    vmi: Mapping[str, Any],
    architecture: str,
    ratio: str | float | None = None,
    config: ClusterConfig | Mapping[str, Any] | None = None,
    *,
    guest_page_tables: bool = False,
) -> int:
    """Bytes that the pod of `vmi` is to request on top of its guest's memory: the sum of the terms.

    See `memory_overhead_terms` for the arguments and what is raised.
    """
    terms = memory_overhead_terms(vmi, architecture, ratio, config, guest_page_tables=guest_page_tables)
    return sum(term.bytes for term in terms)


def memory_overhead_terms(
    vmi: Mapping[str, Any],
    architecture: str,
    ratio: str | float | None = None,
    config: ClusterConfig | Mapping[str, Any] | None = None,
    *,
    guest_page_tables: bool = False,
) -> list[Term]:
    """The parts of the memory overhead, in the order of the reference; none of them is zero.

    Args:
        vmi: a VirtualMachineInstance, defaulted or not; it is not changed.
        architecture: that of a VM which names none.
        ratio: factor on everything but the network's terms; None: the configuration's. Anything but a finite
            decimal number leaves the overhead as it is.
        config: the cluster's settings, or ``spec.configuration`` of the KubeVirt object. With them, and only
            then, the network's terms are counted: the reference adds them for the pod, and leaves them out
            of what the hypervisor needs.
        guest_page_tables: count page tables for the guest's memory where that is more than is requested. The
            reference counts the requested memory alone, which is 0 for a VM that only sets ``memory.guest``:
            the page tables of a large guest then have no room.

    Raises:
        FieldError: a field has the wrong type.
    """
    settings = ClusterConfig.of(config)
    spec = normal_instance(vmi)["spec"]
    arch = spec.get("architecture") or architecture
    counted = [
        term
        for terms in (
            _page_tables(spec, guest_page_tables),
            _processes(),
            _vcpus(spec),
            _devices(spec, arch),
            _probes(spec),
            _protection(spec),
        )
        for term in terms
        if term.bytes
    ]
    factor = settings.additional_guest_memory_overhead_ratio if ratio is None else ratio
    counted += _ratio(sum(term.bytes for term in counted), factor)
    if config is not None:
        counted += _networks(spec, settings)
    return counted


def _page_tables(spec: Mapping[str, Any], of_guest: bool) -> Iterator[Term]:
    """One 512th of the memory, first rounded up to 1000 bytes."""
    domain = spec["domain"]
    amount = Quantity(domain.get("resources", {}).get("requests", {}).get("memory", "0"))
    field = _DOMAIN + "resources.requests.memory"
    guest = Quantity(domain.get("memory", {}).get("guest", "0"))
    if of_guest and guest > amount:
        amount, field = guest, _DOMAIN + "memory.guest"
    size = amount.scaled_value(3) * 1000
    tables = abs(size) // 512 * amount.sign
    yield Term("page-tables", tables, "one 512th of the memory", field)


def _processes() -> Iterator[Term]:
    yield Term("launcher-monitor", LAUNCHER_MONITOR, "the launcher's monitor process")
    yield Term("launcher", LAUNCHER, "the launcher process")
    yield Term("virtlogd", VIRTLOGD, "the log daemon")
    yield Term("virtqemud", VIRTQEMUD, "the libvirt daemon")
    yield Term("qemu", QEMU, "QEMU without its guest's memory")


def _vcpus(spec: Mapping[str, Any]) -> Iterator[Term]:
    domain = spec["domain"]
    if "cpu" in domain:
        count, field = topology_vcpus(domain["cpu"]), _DOMAIN + "cpu"
    else:
        resources = domain.get("resources", {})
        count, field = 1, ""
        for kind in ("limits", "requests"):
            if "cpu" in resources.get(kind, ()):
                count, field = Quantity(resources[kind]["cpu"]).value, f"{_DOMAIN}resources.{kind}.cpu"
                break
    count = max(count, 1)
    yield Term("vcpus", PER_VCPU * count, f"8 MiB for each vCPU, of which there are {count}", field)
    yield Term("io-threads", IO_THREAD, "I/O threads")


def topology_vcpus(cpu: Mapping[str, Any]) -> int:
    """Cores by sockets by threads, those that are set; an unsigned 32-bit number (``hw_utils.go:87``)."""
    factors = [cpu[name] for name in ("cores", "sockets", "threads") if cpu.get(name)]
    return math.prod(factors) % 2**32 if factors else 0


def _devices(spec: Mapping[str, Any], architecture: str) -> Iterator[Term]:
    devices = spec["domain"]["devices"]
    path = _DOMAIN + "devices."
    if devices.get("autoattachGraphicsDevice", True):
        yield Term("video", VIDEO, "video memory of the graphics device", path + "autoattachGraphicsDevice")
    if architecture == "arm64":
        yield Term("firmware", ARM64_FIRMWARE, "two flash devices of 64 MiB", "spec.architecture")
    for name in ("hostDevices", "gpus"):
        if devices.get(name):
            yield Term("vfio", VFIO, "address space of passed-through devices", path + name)
            break
    else:
        for index, interface in enumerate(devices.get("interfaces", ())):
            if "sriov" in interface:
                field = f"{path}interfaces[{index}].sriov"
                yield Term("vfio", VFIO, "address space of passed-through devices", field)
                break
    for index, volume in enumerate(spec.get("volumes", ())):
        if "downwardMetrics" in volume:
            field = f"spec.volumes[{index}].downwardMetrics"
            yield Term("downward-metrics", DOWNWARD_METRICS, "the metrics disk, which lies in memory", field)
            break


def _probes(spec: Mapping[str, Any]) -> Iterator[Term]:
    """A probe that runs a command in the guest runs one in the pod, too."""
    names = [name for name in ("livenessProbe", "readinessProbe") if "exec" in spec.get(name, ())]
    if names:
        size = PER_EXEC_PROBE * len(names) + ANY_EXEC_PROBE
        yield Term("probes", size, "10 MiB for each exec probe, and 100 MiB for any", f"spec.{names[0]}.exec")


def _protection(spec: Mapping[str, Any]) -> Iterator[Term]:
    """Encryption, TPM, and the reserve of a VM whose limit is as low as its request."""
    domain = spec["domain"]
    for technology in ("sev", "snp"):
        if technology in domain.get("launchSecurity", ()):
            field = f"{_DOMAIN}launchSecurity.{technology}"
            yield Term("memory-encryption", MEMORY_ENCRYPTION, "memory encryption", field)
            break
    tpm = domain["devices"].get("tpm")
    if tpm is not None and tpm.get("enabled", True):
        yield Term("tpm", TPM, "the TPM emulator", _DOMAIN + "devices.tpm")
    if domain.get("cpu", {}).get("dedicatedCpuPlacement", False):
        field = _DOMAIN + "cpu.dedicatedCpuPlacement"
        yield Term("guaranteed", GUARANTEED, "reserve, as the pod may not exceed its request", field)
    elif wants_guaranteed(domain.get("resources", {})):
        field = _DOMAIN + "resources"
        yield Term("guaranteed", GUARANTEED, "reserve, as the pod may not exceed its request", field)
    reserved = domain.get("memory", {}).get("reservedOverhead", {}).get("addedOverhead")
    if reserved is not None:
        field = _DOMAIN + "memory.reservedOverhead.addedOverhead"
        yield Term("reserved", Quantity(reserved).value, "asked for by the VM", field)


def wants_guaranteed(resources: Mapping[str, Any]) -> bool:
    """Whether CPU and memory are limited to what is requested (``api/core/v1/types.go:580``)."""
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    memory, memory_limit = Quantity(requests.get("memory", "0")), Quantity(limits.get("memory", "0"))
    cpu, cpu_limit = Quantity(requests.get("cpu", "0")), Quantity(limits.get("cpu", "0"))
    memory_fits = memory == memory_limit if memory else bool(memory_limit)
    return memory_fits and bool(cpu) and cpu == cpu_limit


def _ratio(counted: int, ratio: str | float) -> list[Term]:
    """What the ratio adds, in thousands of bytes; the reference's own float arithmetic."""
    text = str(ratio)
    if not _DECIMAL.fullmatch(text) or not math.isfinite(float(text)):
        return []
    added = int(float(-(-counted // 1000)) * (float(text) - 1.0)) * 1000
    return [Term("ratio", added, f"the overhead so far is multiplied by {text}")] if added else []


def _networks(spec: Mapping[str, Any], config: ClusterConfig) -> Iterator[Term]:
    """The passt process, and what the binding plugins in use ask for, each plugin once."""
    interfaces = spec["domain"]["devices"].get("interfaces", ())
    path = _DOMAIN + "devices.interfaces"
    for index, interface in enumerate(interfaces):
        if "passtBinding" in interface:
            yield Term("passt", PASST, "the passt process", f"{path}[{index}].passtBinding")
            break
    plugins: dict[str, int] = {}
    for index, interface in enumerate(interfaces):
        if "binding" in interface:
            plugins.setdefault(interface["binding"].get("name", ""), index)
    for name, index in plugins.items():
        size = _plugin_memory(name, config)
        if size:
            field = f"{path}[{index}].binding.name"
            yield Term("binding-plugin", size, f"the network binding plugin {name}", field)


def _plugin_memory(name: str, config: ClusterConfig) -> int:
    path = f"spec.configuration.network.binding.{name}."
    overhead = get_mapping(config.network_bindings.get(name, {}), "computeResourceOverhead", path)
    requests = get_mapping(overhead, "requests", path + "computeResourceOverhead.")
    memory = get_quantity(requests, "memory", path + "computeResourceOverhead.requests.")
    return 0 if memory is None else memory.value
