"""Rules for what versions of libvirt refuse in KubeVirt's domains, each found by defining
reference domains.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from kvnode.virt.adapt.rule import Rule, is_bare, remove_all, with_parents

# Elements that say nothing when bare and that no schema takes so (most bare elements are switches, as <acpi/>
# is).
_NOTHING_WHEN_BARE = {"bios", "baseBoard", "chassis", "source", "backingStore", "clock", "hyperv"}
# Attributes that the schema does not take when they are empty.
_ABSENT_WHEN_EMPTY = {"dir"}
# Path, attribute and the value that libvirt assumes without it.
_TAKEN_FOR_GRANTED = (
    ("devices/interface", "type", "user"),
    ("devices/hostdev", "mode", "subsystem"),
    ("clock", "offset", "utc"),
    ("cpu/feature", "policy", "require"),
)
# Path and attribute that libvirt skips there and its schema does not know.
_SKIPPED = (
    ("devices/disk//source[@dev][@name]", "name"),
    ("devices/hostdev/source/address[@type]", "type"),
)


def _drop_bare_elements(domain: ET.Element) -> bool:
    changed = False
    for parent, child in with_parents(domain):
        if child.tag in _NOTHING_WHEN_BARE and is_bare(child):
            parent.remove(child)
            changed = True
    return changed


def _drop_empty_attributes(domain: ET.Element) -> bool:
    changed = False
    for element in domain.iter("source"):
        for name in [
            key for key, value in element.attrib.items() if value == "" and key in _ABSENT_WHEN_EMPTY
        ]:
            del element.attrib[name]
            changed = True
    return changed


def _spell_out_for_the_schema(domain: ET.Element) -> bool:
    """Write what libvirt's parser takes for granted and its schema wants spelled out, and drop what it
    ignores.
    """
    changed = False
    for path, name in _SKIPPED:
        for element in domain.iterfind(path):
            del element.attrib[name]
            changed = True
    for filesystem in domain.iterfind("devices/filesystem[@accessMode]"):
        filesystem.set("accessmode", filesystem.attrib.pop("accessMode"))
        changed = True
    for path, name, value in _TAKEN_FOR_GRANTED:
        for element in domain.iterfind(path):
            if not element.get(name):
                element.set(name, value)
                changed = True
    return changed


def _limit_memory_as_old_libvirt_takes_it(domain: ET.Element) -> bool:
    limit = domain.find("maxMemory[@slots='0']")
    if limit is None:
        return False
    if domain.find("cpu/numa/cell") is None:
        domain.remove(limit)
    else:
        limit.set("slots", "1")
    return True


def _pvpanic_on_isa(domain: ET.Element) -> bool:
    changed = False
    for panic in domain.iterfind("devices/panic"):
        if panic.get("model") == "pvpanic":
            panic.set("model", "isa")
            for address in panic.findall("address"):
                panic.remove(address)
            changed = True
    return changed


def _name_metadata(domain: ET.Element) -> bool:
    """Drop an empty uid of KubeVirt's metadata, which later readers would take for a VM without one."""
    changed = False
    for metadata in domain.iterfind("metadata/{http://kubevirt.io}kubevirt"):
        doomed = [child for child in metadata if child.tag.endswith("}uid") and is_bare(child)]
        changed |= remove_all(metadata, doomed)
    return changed


LIBVIRT_RULES = (
    Rule(
        "bare-elements",
        "KubeVirt marshals some structures that hold nothing; libvirt skips them, its schema does not",
        _drop_bare_elements,
    ),
    Rule(
        "empty-attributes",
        "the schema has no empty <source dir>; the socket beside it counts",
        _drop_empty_attributes,
    ),
    Rule("empty-metadata", "an empty uid in KubeVirt's metadata says nothing", _name_metadata),
    Rule(
        "schema-spelling",
        "the schema wants some defaults spelled out and does not know some attributes that libvirt skips",
        _spell_out_for_the_schema,
    ),
    Rule(
        "max-memory-slots",
        "libvirt 9.0 wants a slot with <maxMemory>, and a NUMA cell with a slot; 11.3 takes slots='0'. "
        "Without a cell nothing can be plugged in, so that the limit says nothing",
        _limit_memory_as_old_libvirt_takes_it,
        until=11_003_000,
    ),
    Rule(
        "pvpanic-model",
        "the PCI model of the panic device came with libvirt 9.1; the ISA one reports the same events",
        _pvpanic_on_isa,
        until=9_001_000,
        note="the panic device is on the ISA bus: this libvirt does not know the PCI model",
    ),
)
