"""Start a VM: from its manifest to a launcher that says Running."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.converter import convert
from kvnode.standalone import host, launch, records
from kvnode.standalone.context import build_context, judge_kvm
from kvnode.standalone.domainfacts import DomainFacts, read_domain
from kvnode.standalone.errors import EXIT_ENVIRONMENT, EXIT_EXISTS, StandaloneError
from kvnode.standalone.images import ImageResolver, Images
from kvnode.standalone.manifest import Instance, read_manifest
from kvnode.standalone.model import Progress, StartOptions
from kvnode.standalone.state import OVERLAID, StateDirectory, VmDirectory, kill
from kvnode.standalone.support import refuse_unsupported
from kvnode.virt.kvm_probe import KvmVerdict

#: Seconds that a guest has to shut down when its VMI does not say (``types.go``, DefaultGracePeriodSeconds).
DEFAULT_GRACE_SECONDS = 30.0


@dataclass(frozen=True)
class _Conversion:
    """What a start has found out."""

    instance: Instance
    context: Mapping[str, Any]
    xml: bytes
    facts: DomainFacts
    verdict: KvmVerdict


class Starter:
    """Starts one VM."""

    def __init__(self, state: StateDirectory, options: StartOptions, progress: Progress) -> None:
        """Start it in ``state``, with these options."""
        self._state = state
        self._options = options
        self._progress = progress

    def start(self, manifest: Mapping[str, Any]) -> VmDirectory:
        """Start the VM and return its directory; raises StandaloneError, and leaves nothing running then."""
        architecture = host.architecture()
        instance = read_manifest(manifest, self._options, architecture)
        refuse_unsupported(instance, architecture)
        host.require_root()
        emulator = host.require_programs(instance.vmi)
        self._state.make()
        vm = self._state.vm(instance.namespace, instance.name)
        with self._state.lock(vm):
            self._state.tidy(vm)
            if vm.process() is not None:
                raise StandaloneError(
                    f"{vm.title} runs already: stop it first, or give another --name", exit_code=EXIT_EXISTS
                )
            self._build_and_launch(vm, instance, architecture, emulator)
        return vm

    def _build_and_launch(
        self, vm: VmDirectory, instance: Instance, architecture: str, emulator: str
    ) -> None:
        images = ImageResolver(
            instance, self._options.images, self._state.images, architecture, self._progress
        ).resolve()
        cache = self._state.cache / "kvm.json"
        verdict = judge_kvm(instance, emulator, self._options.acceleration, cache, self._progress)
        context = build_context(instance, architecture, verdict, images.disks_info)
        self._progress("convert", "converting the VMI to a libvirt domain")
        try:
            xml = convert(instance.vmi, context)
        except FieldError as error:
            raise StandaloneError(error.message, field=error.field) from None
        facts = read_domain(xml)
        host.require_huge_pages(instance.vmi, facts.memory, instance.prefix)
        try:
            with self._state.building(vm) as directory:
                self._write(directory, _Conversion(instance, context, xml, facts, verdict))
            self._launch(vm, instance, images)
        except OSError as error:
            raise StandaloneError(f"{vm.path}: {error.strerror}", exit_code=EXIT_ENVIRONMENT) from None

    def _write(self, directory: Path, plan: _Conversion) -> None:
        """Write everything that the launcher reads and the user may ask for."""
        for part in OVERLAID:
            (directory / part).mkdir()
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        vmi = plan.instance.vmi
        records.write_json(directory / "vmi.json", vmi)
        records.write_json(directory / "context.json", plan.context)
        records.write_atomically(directory / "domain.xml", plan.xml)
        record = {
            "uid": plan.instance.uid,
            "created": created,
            "architecture": plan.context["architecture"],
            "domainType": plan.facts.kind,
            "domainTypeReason": plan.verdict.reason,
            "memoryBytes": plan.facts.memory,
            "ramBlocks": list(plan.facts.ram_blocks),
            "vcpus": plan.facts.vcpus,
            "graceSeconds": _grace(vmi),
        }
        records.write_json(directory / "record.json", record)
        records.write_json(directory / "status.json", {"phase": "Scheduled", "created": created})

    def _launch(self, vm: VmDirectory, instance: Instance, images: Images) -> None:
        huge_pages = host.uses_huge_pages(instance.vmi)
        command = launch.launcher_command(vm, instance.uid, _grace(instance.vmi), huge_pages)
        self._progress("launch", "starting the launcher")
        try:
            libvirt_cache = self._state.cache / "libvirt"
            libvirt_cache.mkdir(exist_ok=True)
            launch.start_sandbox(vm, command, images.binds, str(libvirt_cache), huge_pages=huge_pages)
            if self._options.wait:
                self._progress("wait", "waiting for the guest to start")
                self._wait(vm)
        except BaseException as error:
            process = vm.process()
            if process is not None:
                kill(process)
            self._state.tidy(vm)
            if isinstance(error, KeyboardInterrupt):  # nobody will ask why it failed
                shutil.rmtree(vm.path, ignore_errors=True)
            raise

    def _wait(self, vm: VmDirectory) -> None:
        phase = launch.wait_for(vm, ("Running",), self._options.timeout)
        if not phase:
            raise StandaloneError(f"{vm.title} did not start within {self._options.timeout:g} s")
        status = records.read_json(vm.path / "status.json") or {}
        if phase != "Running" and not status.get("started"):
            said = status.get("message") or launch.last_line(vm.path / "launcher.log")
            raise StandaloneError(f"{vm.title} did not start: {said}")


def _grace(vmi: Mapping[str, Any]) -> float:
    """Return the seconds that the guest has to shut down; a negative number counts as none."""
    seconds = vmi["spec"].get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_SECONDS if seconds is None else float(max(0, seconds))
