"""A stand-in for standalone mode: what it was asked, and answers prepared by the test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kvnode.memory.report import MemoryReport, ProcessMemory
from kvnode.standalone.errors import EXIT_NOT_FOUND, StandaloneError
from kvnode.standalone.model import StartOptions, StopResult, VmInfo

MIB = 1 << 20

VM = VmInfo(
    namespace="default",
    name="demo",
    uid="u-1",
    phase="Running",
    reason="",
    message="",
    running=True,
    domain_type="qemu",
    domain_type_reason="KVM does not work here",
    created="2026-01-01T00:00:00Z",
    started="2026-01-01T00:00:02Z",
    ended="",
    pid=4242,
    pids={},
    memory_bytes=256 * MIB,
    vcpus=2,
    notes=("the network is QEMU's user networking",),
    directory="/state/demo",
    console="/state/demo/console",
    libvirt_uri="",
)

REPORT = MemoryReport(
    namespace="default",
    name="demo",
    domain_type="qemu",
    guest_size=256 * MIB,
    guest_resident=100 * MIB,
    guest_backing="memfd",
    processes=(
        ProcessMemory(
            "launcher", 10, "python3", 50 * MIB, 40 * MIB, 60 * MIB, 100 * MIB, ("launcher",), "within"
        ),
        ProcessMemory(
            "qemu", 11, "qemu-system-x86", 90 * MIB, 80 * MIB, 95 * MIB, 38 * MIB, ("qemu",), "over"
        ),
        ProcessMemory("other", 12, "dnsmasq", MIB, MIB, MIB, 0, (), "no share"),
    ),
    page_tables=2 * MIB,
    page_tables_share=0,
    overhead_used=122 * MIB,
    overhead_requested=138 * MIB,
    headroom=16 * MIB,
    verdict="within",
    unassigned=(("video", 32 * MIB),),
)


@dataclass
class FakeRunner:
    """Answers as prepared; ``calls`` holds what was asked."""

    vms: list[VmInfo] = field(default_factory=list)
    serial: Path | None = None
    on_start: Callable[[Mapping[str, Any]], VmInfo] = lambda _manifest: VM
    report: MemoryReport = REPORT
    domain: bytes = b"<domain><name>default_demo</name></domain>"
    outcome: str = "shutdown"
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def start(self, manifest: Mapping[str, Any], options: StartOptions | None = None) -> VmInfo:
        self.calls.append(("start", manifest["metadata"]["name"], options))
        vm = self.on_start(manifest)
        self.vms.append(vm)
        return vm

    def list_vms(self, *, ended: bool = True) -> list[VmInfo]:
        return [vm for vm in self.vms if ended or vm.running]

    def get(self, name: str) -> VmInfo:
        for vm in self.vms:
            if name in (vm.name, f"{vm.namespace}/{vm.name}"):
                return vm
        raise StandaloneError(f"there is no VM {name!r}", exit_code=EXIT_NOT_FOUND)

    def stop(self, name: str, *, now: bool = False, timeout: float | None = None) -> StopResult:
        self.calls.append(("stop", name, now, timeout))
        vm = self.get(name)
        self.vms[self.vms.index(vm)] = replace(vm, running=False, phase="Succeeded")
        return StopResult(vm.namespace, vm.name, self.outcome, 1.25, "Succeeded", "")  # type: ignore[arg-type]

    def forget(self, name: str) -> None:
        self.calls.append(("forget", name))

    def memory(self, name: str) -> MemoryReport:
        self.get(name)
        return self.report

    def console_path(self, name: str) -> Path:
        return Path(self.get(name).console)

    def log_paths(self, name: str) -> dict[str, Path]:
        self.get(name)
        return {"serial": self.serial} if self.serial else {}

    def xml(self, name: str, *, adapted: bool = False) -> bytes:
        self.get(name)
        return self.domain.replace(b"domain>", b"adapted>") if adapted else self.domain
