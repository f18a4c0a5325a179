"""``kvnode defaults``: manifests with what they leave out filled in."""

from __future__ import annotations

import click

from kvnode.cli import options, output, pure


@click.command("defaults")
@options.files
@options.architecture
@options.cluster_config
@options.form("yaml", "json", default="yaml")
def command(*, files: tuple[str, ...], arch: str, config: str | None, form: str) -> None:
    """Fill in what a manifest leaves out, as a cluster's admission does.

    The output is the VirtualMachineInstance; of a VirtualMachine, the one that its template makes.

    \b
    Example:
      kvnode defaults vm.yaml
      kvnode defaults vm.yaml -o json | jq .spec.domain.machine.type
    """
    settings = options.load_config(config)
    made = [pure.defaulted(manifest, arch, settings) for manifest in pure.read_and_tell(files)]
    if form == "yaml":
        click.echo(output.to_yaml(made))
    elif len(made) == 1:
        click.echo(output.to_json(made[0]))
    else:
        click.echo(output.to_json({"apiVersion": "v1", "kind": "List", "items": made}))
