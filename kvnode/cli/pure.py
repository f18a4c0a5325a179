"""What the pure verbs share: a manifest through defaults and rules, as a cluster's admission takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from kvnode.cli.errors import CliError, JoinedError
from kvnode.cli.manifests import LeftOut, Manifest, read
from kvnode.cli.yamldoc import Duplicate

if TYPE_CHECKING:
    from kvnode.spec.cause import Cause


def read_and_tell(files: tuple[str, ...]) -> list[Manifest]:
    """The machines in these files; what is doubtful about the files is told on standard error."""
    manifests, others = read(files)
    tell_left_out(others)
    for manifest in manifests:
        for line in duplicate_lines(manifest):
            click.echo(f"kvnode: warning: {line}", err=True)
    return manifests


def tell_left_out(others: list[LeftOut]) -> None:
    """Name the documents that are no virtual machines."""
    for other in others:
        click.echo(f"kvnode: warning: {other.source}: {other.what} is no virtual machine: left out", err=True)


def duplicate_lines(manifest: Manifest) -> list[str]:
    """A line for every key that is there twice."""
    return [f"{manifest.source}: {d.path}: {duplicate_message(d)}" for d in manifest.duplicates]


def duplicate_message(duplicate: Duplicate) -> str:
    """What to say about a key that is there twice."""
    where = f" (again in line {duplicate.line})" if duplicate.line else ""
    return f"is there twice{where}: the last one counts"


def defaulted(manifest: Manifest, arch: str, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The instance with its defaults.

    Raises:
        CliError: defaulting refuses it; the field is named.
    """
    import kvnode  # noqa: PLC0415

    try:
        return kvnode.apply_defaults(manifest.vmi, arch, config)
    except ValueError as error:
        raise field_error(manifest, error) from None


def admitted(manifest: Manifest, arch: str, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The instance as a cluster would store it: with its defaults, and found valid.

    Raises:
        CliError: it is refused; every cause is named.
    """
    import kvnode  # noqa: PLC0415

    vmi = defaulted(manifest, arch, config)
    metadata = vmi.setdefault("metadata", {})
    metadata["namespace"] = metadata.get("namespace") or "default"
    causes = kvnode.validate(vmi, arch, config)
    if causes:
        raise JoinedError([cause_error(manifest, cause) for cause in causes])
    return vmi


def cause_error(manifest: Manifest, cause: Cause) -> CliError:
    """A finding of validation as an error."""
    return manifest.error(cause.message, cause.field)


def field_error(manifest: Manifest, error: ValueError) -> CliError:
    """An error of the library that names a field."""
    field, message = getattr(error, "field", ""), getattr(error, "message", None)
    return manifest.error(str(error) if message is None else message, field)
