"""Rules for a machine without a cluster: nobody has made the tap devices that a pod's domain is
to be given.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from kvnode.virt.adapt.rule import Rule, remove_all

# What an <interface> keeps when it turns into one of user networking: the rest is about taps and vhost.
_KEPT_OF_AN_INTERFACE = {"mac", "model", "boot", "alias", "address", "rom", "acpi", "link"}


def _user_networking(domain: ET.Element) -> bool:
    changed = False
    for interface in domain.iterfind("devices/interface"):
        if interface.get("type") not in {"ethernet", ""}:
            continue
        interface.set("type", "user")
        remove_all(interface, [child for child in interface if child.tag not in _KEPT_OF_AN_INTERFACE])
        changed = True
    return changed


def _maximum_cpu_under_emulation(domain: ET.Element) -> bool:
    cpu = domain.find("cpu")
    if domain.get("type") != "qemu" or cpu is None or cpu.get("mode") != "host-passthrough":
        return False
    cpu.set("mode", "maximum")
    return True


STANDALONE_RULES = (
    Rule(
        "user-networking",
        "there is no pod network here: QEMU's own NAT takes its place (the guest gets 10.0.2.15 by DHCP)",
        _user_networking,
        note="interfaces use QEMU's user networking: the guest reaches out, and is not reached from outside",
    ),
    Rule(
        "emulated-host-cpu",
        "the host's CPU cannot be passed through to software emulation, which libvirt refuses",
        _maximum_cpu_under_emulation,
        note="host-passthrough means the most that QEMU can emulate: there is no KVM",
    ),
)
