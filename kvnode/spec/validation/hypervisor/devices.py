"""Interfaces and other devices that libvirt or QEMU do not take."""

from __future__ import annotations

import re

from kvnode.spec.cause import shown
from kvnode.spec.validation.review import Review
from kvnode.spec.validation.syntax import is_mac

_INTERFACES = "domain.devices.interfaces"
_COLONS = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_WATCHDOG_ACTIONS = ("reset", "shutdown", "poweroff", "pause", "none", "dump", "inject-nmi")
_LARGEST_ACPI_INDEX = 16383  # QEMU hw/acpi/pcihp.c


def check_macs(review: Review) -> None:
    """libvirt reads MAC addresses with colons only and refuses multicast ones; equal ones fight."""
    seen: dict[str, int] = {}
    for index, interface in enumerate(review.interfaces):
        mac = interface.get("macAddress", "")
        path = f"{_INTERFACES}[{index}].macAddress"
        if not mac or not is_mac(mac):
            continue  # none, or an error already
        if _COLONS.fullmatch(mac) is None:
            review.invalid(path, f"is {shown(mac)}: libvirt reads six pairs of digits between colons only")
        elif int(mac[:2], 16) & 1:
            review.invalid(path, f"is {shown(mac)}, a multicast address: libvirt refuses it, use 02:...")
        first = seen.setdefault(re.sub("[^0-9a-f]", "", mac.lower()), index)
        if first != index:
            review.invalid(path, f"is also that of interface {first}: give each its own")


def check_passt_models(review: Review) -> None:
    """libvirt connects passt to virtio cards only."""
    for index, interface in enumerate(review.interfaces):
        model = interface.get("model") or "virtio"
        if "passtBinding" in interface and model != "virtio":
            review.invalid(
                f"{_INTERFACES}[{index}].model", f"is {shown(model)}: passt works with virtio only"
            )


def check_acpi_indexes(review: Review) -> None:
    """QEMU refuses an ACPI index that is too large or there twice; one below 1 counts as not set."""
    seen: dict[int, int] = {}
    for index, interface in enumerate(review.interfaces):
        number = interface.get("acpiIndex")
        if number is None:
            continue
        path = f"{_INTERFACES}[{index}].acpiIndex"
        if number < 1:
            review.invalid(path, f"is {number}, which counts as not set: use 1 or more")
        elif number > _LARGEST_ACPI_INDEX:
            review.invalid(path, f"is {number}: QEMU takes {_LARGEST_ACPI_INDEX} at most")
        elif seen.setdefault(number, index) != index:
            review.invalid(path, f"is also that of interface {seen[number]}: QEMU refuses that")


def check_watchdog_action(review: Review) -> None:
    """libvirt refuses an action that it does not know."""
    watchdog = review.devices.get("watchdog") or {}
    for model in ("i6300esb", "diag288"):
        action = (watchdog.get(model) or {}).get("action", "")
        if action and action not in _WATCHDOG_ACTIONS:
            message = f"is {shown(action)}: libvirt knows {', '.join(_WATCHDOG_ACTIONS)}"
            review.invalid(f"domain.devices.watchdog.{model}.action", message)


def check_panic_models(review: Review) -> None:
    """libvirt takes each panic model once, and on arm64 pvpanic only."""
    seen: set[str] = set()
    for index, device in enumerate(review.devices.get("panicDevices", [])):
        model = device.get("model", "")
        path = f"domain.devices.panicDevices[{index}].model"
        if model and model in seen:
            review.invalid(path, f"is {shown(model)} again: libvirt takes one panic device of each model")
        elif review.architecture == "arm64" and model in ("isa", "hyperv"):
            review.invalid(path, f"is {model}, a device of x86: use pvpanic on arm64")
        seen.add(model)


RULES = (check_macs, check_passt_models, check_acpi_indexes, check_watchdog_action, check_panic_models)
