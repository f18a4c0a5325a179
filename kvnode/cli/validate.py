"""``kvnode validate``: manifests against KubeVirt's rules, and against what libvirt and QEMU will take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from kvnode.cli import exitcodes, options, output, pure
from kvnode.cli.app import complain
from kvnode.cli.errors import CliError, one_line
from kvnode.cli.manifests import Manifest, read

Finding = dict[str, str]


@dataclass
class Verdict:
    """What was found about one machine."""

    manifest: Manifest
    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The verdict ready for JSON."""
        return {
            "source": self.manifest.source,
            "kind": self.manifest.kind,
            "namespace": self.manifest.namespace,
            "name": self.manifest.name,
            "valid": not self.errors,
            "errors": self.errors,
            "warnings": self.warnings,
        }


@click.command("validate")
@options.files
@options.architecture
@options.cluster_config
@options.raw
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
@options.form("text", "json", "yaml", default="text")
def command(
    *, files: tuple[str, ...], arch: str, config: str | None, raw: bool, strict: bool, form: str
) -> int:
    """Check manifests against KubeVirt's rules.

    Errors are what a cluster's admission refuses. Warnings are what it lets through and libvirt or QEMU then
    refuse, and keys that are there twice. Exit code 1 tells of errors.

    \b
    Example:
      kvnode validate vm.yaml
      kvnode validate --strict -o json vms/*.yaml
    """
    settings = options.load_config(config)
    failures: list[CliError] = []
    manifests, others = read(files, failures)
    for failure in failures:
        complain(failure.line())
    pure.tell_left_out(others)
    verdicts = [_examine(manifest, arch, settings, raw) for manifest in manifests]
    if strict:
        for verdict in verdicts:
            verdict.errors, verdict.warnings = [*verdict.errors, *verdict.warnings], []
    if form == "text":
        for verdict in verdicts:
            _print(verdict)
    else:
        output.emit([verdict.as_dict() for verdict in verdicts], form)
    if failures:
        return failures[0].code
    return exitcodes.FAILED if any(verdict.errors for verdict in verdicts) else exitcodes.OK


def _examine(manifest: Manifest, arch: str, config: Mapping[str, Any] | None, raw: bool) -> Verdict:
    import kvnode  # noqa: PLC0415

    verdict = Verdict(manifest)
    for duplicate in manifest.duplicates:
        message = pure.duplicate_message(duplicate)
        verdict.warnings.append(
            {"field": duplicate.path, "reason": "FieldValueDuplicate", "message": message}
        )
    try:
        vmi = manifest.vmi if raw else pure.defaulted(manifest, arch, config)
    except CliError as error:
        verdict.errors.append({"field": error.field, "reason": "FieldValueInvalid", "message": error.message})
        return verdict
    for causes, into in (
        (kvnode.validate(vmi, arch, config), verdict.errors),
        (kvnode.warnings(vmi, arch, config), verdict.warnings),
    ):
        into += [
            {"field": manifest.path(c.field), "reason": c.reason, "message": one_line(c.message)}
            for c in causes
        ]
    return verdict


def _print(verdict: Verdict) -> None:
    manifest = verdict.manifest
    for finding in verdict.warnings:
        click.echo(f"kvnode: warning: {_line(manifest, finding)}", err=True)
    for finding in verdict.errors:
        click.echo(f"kvnode: {_line(manifest, finding)}", err=True)
    word, colour = ("invalid", "red") if verdict.errors else ("valid", "green")
    state = click.style(word, fg=colour) if output.on_terminal() else word
    name = one_line(f"{manifest.namespace}/{manifest.name}")
    click.echo(f"{one_line(manifest.source)}: {manifest.kind} {name}: {state}")


def _line(manifest: Manifest, finding: Finding) -> str:
    return CliError(finding["message"], source=manifest.source, field=finding["field"]).line()
