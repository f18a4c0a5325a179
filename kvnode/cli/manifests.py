"""Manifests: read from files and standard input, told apart by kind, and brought to a
VirtualMachineInstance.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.cli import exitcodes
from kvnode.cli.errors import CliError
from kvnode.cli.yamldoc import Document, Duplicate, load_all
from kvnode.spec.machine import API_VERSION, INSTANCE, MACHINE, TEMPLATE, instance_of

MAX_BYTES = 16 << 20
"""Size of a text, bytes; an API server takes objects of 1.5 MiB."""

API_GROUP = "kubevirt.io"
VM, VMI = MACHINE, INSTANCE


@dataclass(frozen=True)
class Manifest:
    """One virtual machine of a manifest."""

    source: str
    """The file, ``<stdin>`` for standard input, and which document when it holds several."""
    document: dict[str, Any]
    """As it was written: a VirtualMachine or a VirtualMachineInstance."""
    vmi: dict[str, Any]
    """The instance: the document itself, or what a VirtualMachine's template makes."""
    duplicates: tuple[Duplicate, ...] = ()

    @property
    def kind(self) -> str:
        """``VirtualMachine`` or ``VirtualMachineInstance``."""
        return VM if self.document.get("kind") == VM else VMI

    @property
    def name(self) -> str:
        """``metadata.name``, "" when there is none."""
        return _text(self.document, "name")

    @property
    def namespace(self) -> str:
        """``metadata.namespace``, ``default`` when there is none."""
        return _text(self.document, "namespace") or "default"

    def path(self, field: str) -> str:
        """A field of the instance as its path in the document: below the template for a VirtualMachine."""
        inside = field.startswith(("spec", "metadata"))
        return f"{TEMPLATE}.{field}" if self.kind == VM and inside else field

    def error(self, message: str, field: str = "", code: int = exitcodes.FAILED) -> CliError:
        """An error about a field of the instance, ready to raise."""
        return CliError(message, source=self.source, field=self.path(field), code=code)


@dataclass(frozen=True)
class LeftOut:
    """A document that is no virtual machine."""

    source: str
    what: str


def read_text(name: str) -> tuple[str, str]:
    """What a file holds, ``-`` being standard input, and the name to show for it.

    Raises:
        CliError: it cannot be read, is too large, or is not UTF-8.
    """
    shown = "<stdin>" if name == "-" else name
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise CliError("no such file", source=shown, code=exitcodes.NOT_FOUND) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CliError(f"cannot be read: {reason}", source=shown) from None
    if len(data) > MAX_BYTES:
        raise CliError(f"is larger than {MAX_BYTES >> 20} MiB, which no manifest is", source=shown)
    try:
        return data.decode("utf-8"), shown
    except UnicodeDecodeError as error:
        raise CliError(f"is not UTF-8: byte {error.start} is wrong", source=shown) from None


def read_mapping(name: str, what: str) -> dict[str, Any]:
    """The one mapping that a file of settings holds; ``what`` names it in errors."""
    text, shown = read_text(name)
    documents = load_all(text, shown)
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise CliError(f"must hold one mapping: {what}", source=shown)
    value: dict[str, Any] = documents[0].value
    return value


def read(
    names: Sequence[str], failures: list[CliError] | None = None
) -> tuple[list[Manifest], list[LeftOut]]:
    """The virtual machines in these files, and what else was in them.

    With ``failures`` a file that cannot be read stops nothing: its error is appended there.

    Raises:
        CliError: a file cannot be read, or none holds a virtual machine.
    """
    if list(names).count("-") > 1:
        raise CliError("standard input (-) can be read only once", code=exitcodes.USAGE)
    found: list[Manifest] = []
    others: list[LeftOut] = []
    for name in names:
        try:
            entries = _read_one(name)
        except CliError as error:
            if failures is None:
                raise
            failures.append(error)
            continue
        found += [entry for entry in entries if isinstance(entry, Manifest)]
        others += [entry for entry in entries if isinstance(entry, LeftOut)]
    if not found and not failures:
        held = f": it holds {', '.join(other.what for other in others)}" if others else ": it is empty"
        files = ", ".join("<stdin>" if name == "-" else name for name in names)
        raise CliError(f"no {VMI} or {VM} there{held}", source=files)
    return found, others


def _read_one(name: str) -> list[Manifest | LeftOut]:
    text, shown = read_text(name)
    return [_classify(source, document) for source, document in _sources(shown, load_all(text, shown))]


def _sources(shown: str, documents: list[Document]) -> Iterator[tuple[str, Document]]:
    """Each object with the words that say where it is; a List, as `kubectl get -o yaml` prints one, is
    opened.
    """
    for number, document in enumerate(documents, start=1):
        source = f"{shown}, document {number}" if len(documents) > 1 else shown
        value = document.value
        if (
            isinstance(value, dict)
            and str(value.get("kind")).endswith("List")
            and isinstance(value.get("items"), list)
        ):
            for index, item in enumerate(value["items"]):
                inside = f"items[{index}]."
                own = [d for d in document.duplicates if d.path.startswith(inside)]
                yield f"{source}, items[{index}]", Document(item, own)
        else:
            yield source, document


def _classify(source: str, document: Document) -> Manifest | LeftOut:
    value = document.value
    if not isinstance(value, dict):
        what = "a list" if isinstance(value, list) else "a single value"
        raise CliError(f"is {what}, not an object with apiVersion, kind, metadata and spec", source=source)
    version: Any = value.get("apiVersion")
    kind: Any = value.get("kind")
    if kind is None and isinstance(value.get("spec"), dict) and "domain" in value["spec"]:
        # The library takes instances without a type, and so do these commands.
        version, kind = API_VERSION, VMI
    if not isinstance(kind, str) or not isinstance(version, str):
        missing = "kind" if not isinstance(kind, str) else "apiVersion"
        raise CliError(
            f"must be there and be a text, such as {_EXAMPLE[missing]}", source=source, field=missing
        )
    if version.partition("/")[0] != API_GROUP or kind not in (VM, VMI):
        return LeftOut(source, f"{kind} ({version})")
    _check_version(source, version)
    for key in ("metadata", "spec"):
        if key in value and value[key] is not None and not isinstance(value[key], dict):
            raise CliError("must be an object", source=source, field=key)
    vmi = _instance_of(source, value) if kind == VM else value
    return Manifest(source, value, vmi, tuple(document.duplicates))


_EXAMPLE = {"kind": VMI, "apiVersion": API_VERSION}


def _check_version(source: str, version: str) -> None:
    name = version.partition("/")[2]
    if name not in ("v1", "v1alpha3"):
        raise CliError(f"{version} is not known: write {API_VERSION}", source=source, field="apiVersion")


def _instance_of(source: str, vm: dict[str, Any]) -> dict[str, Any]:
    try:
        return instance_of(vm)
    except FieldError as error:
        raise CliError(error.message, source=source, field=error.field) from None


def _text(document: dict[str, Any], key: str) -> str:
    metadata = document.get("metadata")
    value = metadata.get(key) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""
