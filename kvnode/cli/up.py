"""``kvnode up``: start virtual machines on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from kvnode.cli import options, output, pure, serial
from kvnode.cli.app import as_cli_error, complain
from kvnode.cli.errors import CliError
from kvnode.cli.manifests import Manifest

if TYPE_CHECKING:
    from kvnode.standalone.model import StartOptions, VmInfo
    from kvnode.standalone.runner import Runner


@click.command("up")
@options.files
@click.option("--name", help="Name to give the machine instead of its own.")
@click.option("-n", "--namespace", help="Namespace to use instead of the manifest's.")
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="NAME=FILE",
    help="Image of the containerDisk volume NAME: a disk image or an OCI layout directory. For a kernelBoot "
    "container NAME is kernel-boot, and a directory with its files will do. May be given several times.",
)
@click.option(
    "--acceleration",
    type=click.Choice(["auto", "kvm", "emulation"]),
    default="auto",
    show_default=True,
    help="auto: KVM where a probe shows that it works, else software emulation.",
)
@options.cluster_config
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until the machine is Running.")
@click.option("--wait-for", metavar="TEXT", help="Wait until the guest wrote TEXT to its serial console.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="Seconds to wait before giving up and ending the machine.",
)
@click.option("--console", "join", is_flag=True, help="Connect to the serial console then (Ctrl-] leaves).")
@options.state_dir
@options.form("text", "json", "yaml", default="text")
def command(
    *,
    files: tuple[str, ...],
    name: str | None,
    namespace: str | None,
    images: tuple[str, ...],
    acceleration: str,
    config: str | None,
    wait: bool,
    wait_for: str | None,
    timeout: float,
    join: bool,
    state_dir: Path | None,
    form: str,
) -> int:
    """Start virtual machines on this machine, without a cluster.

    A VirtualMachineInstance is started, or the instance of a VirtualMachine's template. Each runs in
    namespaces of its own beside its own libvirt daemon; that needs root. Ctrl-C while it comes up leaves
    nothing behind.

    \b
    Example:
      kvnode up vm.yaml --image system=disk.qcow2
      kvnode up vm.yaml --name second --console
    """
    from kvnode.standalone.model import StartOptions  # noqa: PLC0415

    if not wait and (wait_for or join):
        raise click.UsageError("--no-wait does not go with --wait-for or --console")
    start = StartOptions(
        name=name,
        namespace=namespace,
        images=options.parse_images(images),
        acceleration=cast(Literal["auto", "kvm", "emulation"], acceleration),
        wait=wait,
        timeout=timeout,
        config=options.load_config(config),
    )
    manifests = pure.read_and_tell(files)
    if len(manifests) > 1 and (name or join):
        raise click.UsageError(f"--name and --console are for one machine, and {len(manifests)} are given")
    runner = options.runner(state_dir, progress=form == "text")
    with _ends_as_ctrl_c():
        started, code = _start_all(runner, manifests, start, wait_for)
    if form == "text":
        for vm in started:
            _tell(vm)
    else:
        output.emit([dataclasses.asdict(vm) for vm in started], form)
    if join and started:
        vm = started[0]
        serial.attach(runner.console_path(_full(vm)), vm.name)
    return code


@contextlib.contextmanager
def _ends_as_ctrl_c() -> Iterator[None]:
    """Let whoever ends the command (``timeout``, a terminal that goes) leave as little behind as Ctrl-C."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    # One that is ignored, as by nohup, stays so.
    default = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in default:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in default:
            signal.signal(number, signal.SIG_DFL)


def _start_all(
    runner: Runner, manifests: list[Manifest], start: StartOptions, wait_for: str | None
) -> tuple[list[VmInfo], int]:
    """Start one after the other; one that fails is told of and does not stop those behind it."""
    started: list[VmInfo] = []
    code = 0
    for manifest in manifests:
        try:
            started.append(_start(runner, manifest, start, wait_for))
        except Exception as error:
            known = as_cli_error(error)
            if known is None:
                raise
            complain((known if known.source else manifest_error(manifest, known)).line())
            code = code or known.code
    return started, code


def manifest_error(manifest: Manifest, error: CliError) -> CliError:
    """The error with the manifest's file in front."""
    return CliError(error.message, source=manifest.source, field=error.field, code=error.code)


def _start(runner: Runner, manifest: Manifest, start: StartOptions, wait_for: str | None) -> VmInfo:
    vm = runner.start(manifest.document, start)
    if wait_for is None:
        return vm
    full = _full(vm)
    options.tell("wait", f"waiting for {wait_for!r} on the serial console")

    def going() -> bool:
        return runner.get(full).running

    try:
        serial.wait_for_text(lambda: runner.log_paths(full).get("serial"), wait_for, going, start.timeout)
        return runner.get(full)
    except BaseException as error:
        runner.stop(full, now=True)
        if isinstance(error, KeyboardInterrupt):
            runner.forget(full)
        raise


def _full(vm: VmInfo) -> str:
    return f"{vm.namespace}/{vm.name}"


def _tell(vm: VmInfo) -> None:
    kind = "KVM" if vm.domain_type == "kvm" else "software emulation"
    why = f" ({vm.domain_type_reason})" if vm.domain_type_reason else ""
    memory = output.size(vm.memory_bytes)
    click.echo(f"{vm.namespace}/{vm.name} is {vm.phase}: {vm.vcpus} vCPU, {memory}, {kind}{why}")
    for note in vm.notes:
        click.echo(f"  note: {note}")
