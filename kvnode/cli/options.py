"""Options that several verbs share, and what their values become."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvnode.cli.errors import CliError
from kvnode.cli.manifests import read_mapping

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kvnode.standalone.runner import Runner

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

ARCHITECTURES = ("amd64", "arm64", "s390x")
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "s390x": "s390x"}


def host_architecture() -> str:
    """This machine's architecture by Kubernetes' name; amd64 when it is none of KubeVirt's."""
    return _MACHINES.get(platform.machine(), "amd64")


def files(function: Function) -> Function:
    """Manifests: files, or ``-`` for standard input."""
    return click.argument("files", nargs=-1, required=True, metavar="FILE...")(function)


def architecture(function: Function) -> Function:
    """``--arch``: of machines that name none."""
    return click.option(
        "--arch",
        "arch",
        type=click.Choice(ARCHITECTURES),
        default=host_architecture,
        show_default="this machine's",
        help="Architecture of machines that name none.",
    )(function)


def cluster_config(function: Function) -> Function:
    """``--config``: the cluster's configuration."""
    return click.option(
        "--config",
        "config",
        metavar="FILE",
        help="Cluster configuration: a KubeVirt object, or its spec.configuration alone.",
    )(function)


def form(*choices: str, default: str) -> Decorator:
    """``-o``: the form of the output."""

    def decorate(function: Function) -> Function:
        return click.option(
            "-o",
            "--output",
            "form",
            type=click.Choice(choices),
            default=default,
            show_default=True,
            help="Form of the output.",
        )(function)

    return decorate


def indent(function: Function) -> Function:
    """``--indent``: XML for people."""
    return click.option(
        "--indent/--no-indent",
        "indent",
        default=None,
        help="An element a line, or all on one.  [default: on a terminal]",
    )(function)


def raw(function: Function) -> Function:
    """``--raw``: the manifest has its defaults already."""
    return click.option(
        "--raw",
        is_flag=True,
        help="Take the instance as it is: it went through a cluster's admission already.",
    )(function)


def state_dir(function: Function) -> Function:
    """``--state-dir``: where the state of running machines lives."""
    return click.option(
        "--state-dir",
        "state_dir",
        type=click.Path(path_type=Path),
        envvar="KVNODE_STATE_DIR",
        show_envvar=True,
        metavar="DIR",
        help="Directory of the machines' state.  [default: $XDG_STATE_HOME/kvnode]",
    )(function)


def vm_name(function: Function) -> Function:
    """One virtual machine, by NAME or NAMESPACE/NAME."""
    return click.argument("name", metavar="NAME", shell_complete=_complete_names)(function)


def vm_names(*, required: bool = True) -> Decorator:
    """Virtual machines, by NAME or NAMESPACE/NAME."""

    def decorate(function: Function) -> Function:
        argument = click.argument(
            "names",
            nargs=-1,
            required=required,
            metavar="NAME..." if required else "[NAME]...",
            shell_complete=_complete_names,
        )
        return argument(function)

    return decorate


def runner(directory: Path | None, *, progress: bool = False) -> Runner:
    """Standalone mode on this state directory; with ``progress`` its long steps are told on standard
    error.
    """
    from kvnode.standalone.runner import Runner  # noqa: PLC0415 - the pure verbs do without it

    return Runner(directory, progress=tell if progress else None)


def load_config(name: str | None) -> Mapping[str, Any] | None:
    """The cluster configuration in a file, out of a whole KubeVirt object when it is one; None for None."""
    if name is None:
        return None
    value = read_mapping(name, "a KubeVirt object, or its spec.configuration")
    configuration: Any = value
    if "kind" in value:
        if value["kind"] != "KubeVirt":
            raise CliError(
                "must be KubeVirt, or left out above a mere configuration", source=name, field="kind"
            )
        spec = value.get("spec") or {}
        configuration = spec.get("configuration") if isinstance(spec, dict) else None
        if configuration is None:
            configuration = {}
    from kvnode.spec.config import ClusterConfig  # noqa: PLC0415 - only where there is one

    try:
        ClusterConfig.of(configuration)
    except ValueError as error:
        message, field = getattr(error, "message", str(error)), getattr(error, "field", "")
        raise CliError(message, source=name, field=field) from None
    checked: Mapping[str, Any] = configuration
    return checked


def load_context(name: str | None) -> Mapping[str, Any]:
    """The converter's context in a file, which the converter has found well-formed; empty for None."""
    if name is None:
        return {}
    context = read_mapping(name, "the converter's context")
    import kvnode  # noqa: PLC0415 - the native core

    try:
        kvnode.ConverterContext(context)
    except ValueError as error:
        message, field = getattr(error, "message", str(error)), getattr(error, "field", "")
        raise CliError(message, source=name, field=field) from None
    return context


def parse_images(pairs: tuple[str, ...]) -> dict[str, Path]:
    """``NAME=FILE`` pairs as a mapping."""
    images: dict[str, Path] = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (name and equals and path):
            raise click.BadParameter(f"{pair!r} must be NAME=FILE: a volume's name and its image")
        if name in images:
            raise click.BadParameter(f"{name} is given twice")
        images[name] = Path(path)
    return images


def tell(step: str, text: str) -> None:
    """Tell of a step of a long operation on standard error."""
    click.echo(f"{step + ':':<9}{text}", err=True)


def _complete_names(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem  # noqa: PLC0415

    directory = ctx.params.get("state_dir") or os.environ.get("KVNODE_STATE_DIR")
    try:
        found = runner(Path(directory) if directory else None).list_vms()
    except Exception:  # a completion that fails must not print anything
        return []
    names = [vm.name if vm.namespace == "default" else f"{vm.namespace}/{vm.name}" for vm in found]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
