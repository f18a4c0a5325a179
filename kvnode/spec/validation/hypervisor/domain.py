"""CPU, memory, clock, firmware and features that libvirt or QEMU do not take."""

from __future__ import annotations

import re

from kvnode.api.quantity import Quantity
from kvnode.spec.cause import shown
from kvnode.spec.validation.review import Review
from kvnode.spec.validation.syntax import byte_length

_SPINLOCKS = 4096
_VENDOR_ID_LENGTH = 12  # bytes, libvirt conf/domain_conf.h
_UUID = re.compile(r"[0-9a-fA-F]{32}")
# x86 without an IOMMU, which libvirt adds by itself since 10.10; QEMU's virt and s390-ccw-virtio.
_MOST_VCPUS = {"amd64": 255, "arm64": 512, "s390x": 248}
_SMALLEST_GUEST = Quantity("1Mi")
_MACHINES = {
    "amd64": re.compile(r"q35|pc-q35-(rhel|noble|jammy)?[0-9][0-9a-z.+-]*"),
    "arm64": re.compile(r"virt|virt-(rhel)?[0-9][0-9a-z.+-]*"),
    "s390x": re.compile(r"s390-ccw-virtio|s390-ccw-virtio-(rhel)?[0-9][0-9a-z.+-]*"),
}
_HUGE_PAGES = {
    "amd64": ("2Mi", "1Gi"),
    "arm64": ("64Ki", "2Mi", "32Mi", "512Mi", "1Gi", "16Gi"),
    "s390x": ("1Mi", "2Gi"),
}
_TICK_POLICIES = {
    "rtc": ("delay", "catchup"),
    "pit": ("delay", "catchup", "discard"),
    "hpet": ("delay", "catchup", "merge", "discard"),
}


def check_hyperv(review: Review) -> None:
    """Hyper-V values that libvirt refuses, and a whole section that it has for x86 and arm64 only."""
    path = "domain.features.hyperv"
    hyperv = (review.domain.get("features") or {}).get("hyperv")
    if hyperv is None:
        return
    if review.architecture == "s390x":
        review.invalid(path, "is not there on s390x: libvirt refuses it")
    spinlocks = hyperv.get("spinlocks") or {}
    retries = spinlocks.get("spinlocks", _SPINLOCKS)
    if spinlocks.get("enabled", True) and retries < _SPINLOCKS:
        message = f"is {retries}: use {_SPINLOCKS}, the default, or more, as libvirt refuses fewer than 4095"
        review.invalid(f"{path}.spinlocks.spinlocks", message)
    vendor = (hyperv.get("vendorid") or {}).get("vendorid", "")
    if byte_length(vendor) > _VENDOR_ID_LENGTH or "," in vendor:
        message = f"is {shown(vendor)}: libvirt takes {_VENDOR_ID_LENGTH} bytes at most, and no comma"
        review.invalid(f"{path}.vendorid.vendorid", message)


def check_firmware_uuid(review: Review) -> None:
    """libvirt refuses a malformed UUID."""
    uuid = (review.domain.get("firmware") or {}).get("uuid", "")
    if uuid and _UUID.fullmatch(uuid.replace("-", "")) is None:
        message = f"is {shown(uuid)}: must be a UUID such as 5d307ca9-b3ef-428c-8861-06e72d69f223"
        review.invalid("domain.firmware.uuid", message)


def check_machine(review: Review) -> None:
    """Machine types that match the cluster's pattern and look like none of QEMU's."""
    machine = (review.domain.get("machine") or {}).get("type", "")
    known = _MACHINES.get(review.architecture)
    if machine and known is not None and known.fullmatch(machine) is None:
        review.invalid("domain.machine.type", f"is {shown(machine)}, which is no machine type of QEMU")


def check_vcpus(review: Review) -> None:
    """More vCPUs, hotplug ones included, than the machine takes."""
    cpu = review.cpu or {}
    sockets = max(cpu.get("sockets", 0), cpu.get("maxSockets", 0))
    asked = (sockets or 1) * (cpu.get("cores", 0) or 1) * (cpu.get("threads", 0) or 1)
    most = _MOST_VCPUS.get(review.architecture, asked)
    if asked > most:
        field = "maxSockets" if cpu.get("maxSockets") else "sockets"
        who = "libvirt before 10.10" if review.architecture == "amd64" else "QEMU"
        review.invalid(f"domain.cpu.{field}", f"gives up to {asked} vCPUs: {who} takes {most} at most")


def check_cpu_features(review: Review) -> None:
    """libvirt refuses a CPU feature without a name, or named twice."""
    seen: set[str] = set()
    for index, feature in enumerate((review.cpu or {}).get("features", [])):
        name = feature.get("name", "")
        path = f"domain.cpu.features[{index}].name"
        if not name:
            review.invalid(path, "is empty: libvirt refuses that")
        elif name in seen:
            review.invalid(path, f"is {shown(name)} again: libvirt refuses a feature that is there twice")
        seen.add(name)


def check_memory(review: Review) -> None:
    """Guests without memory, maxima below it, huge pages that no host of the architecture has."""
    memory = review.memory or {}
    guest, most = memory.get("guest"), memory.get("maxGuest")
    if guest is not None and guest < _SMALLEST_GUEST:
        review.invalid("domain.memory.guest", f"is {guest}: no guest starts with less than 1Mi")
    if guest is not None and most is not None and most < guest:
        message = f"is {most}: libvirt refuses a maximum below the memory itself, {guest}"
        review.invalid("domain.memory.maxGuest", message)
    text = (memory.get("hugepages") or {}).get("pageSize")
    sizes = _HUGE_PAGES.get(review.architecture)
    if text is None or sizes is None:
        return
    try:
        size = Quantity(text)
    except ValueError:
        return  # an error already
    if size not in [Quantity(known) for known in sizes]:
        message = f"is {text}: huge pages on {review.architecture} are of {', '.join(sizes)}"
        review.invalid("domain.memory.hugepages.pageSize", message)


def check_clock(review: Review) -> None:
    """Tick policies, tracks and time zones that libvirt refuses."""
    clock = review.domain.get("clock") or {}
    if clock.get("timezone") == "":
        review.invalid("domain.clock.timezone", "is empty: libvirt refuses that, remove it")
    timers = clock.get("timer") or {}
    for name, policies in _TICK_POLICIES.items():
        policy = (timers.get(name) or {}).get("tickPolicy", "")
        if policy and policy not in policies:
            message = f"is {shown(policy)}: libvirt takes {', '.join(policies)}"
            review.invalid(f"domain.clock.timer.{name}.tickPolicy", message)
    track = (timers.get("rtc") or {}).get("track", "")
    if track not in ("", "guest", "wall"):
        review.invalid("domain.clock.timer.rtc.track", f"is {shown(track)}: libvirt takes guest, wall")


RULES = (
    check_hyperv,
    check_firmware_uuid,
    check_machine,
    check_vcpus,
    check_cpu_features,
    check_memory,
    check_clock,
)
