"""What standalone mode takes and gives: plain data, ready for JSON (``dataclasses.asdict``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

#: ``progress(step, text)``: told when a step of a long operation begins. ``step`` is a short word that
#: programs may rely on (``probe``, ``convert``, ``image``, ``launch``, ``wait``, ``stop``), ``text`` is for
#: people.
Progress = Callable[[str, str], None]

Acceleration = Literal["auto", "kvm", "emulation"]


@dataclass(frozen=True)
class StartOptions:
    """How a VM is to be started."""

    name: str | None = None
    """Name to give the VM instead of ``metadata.name``."""

    namespace: str | None = None
    """Namespace to use instead of ``metadata.namespace`` (which is ``default`` when absent)."""

    images: Mapping[str, Path] = field(default_factory=dict)
    """Volume name (``kernel-boot`` for the kernelBoot container) to a disk image file or a local OCI layout
    directory; for ``kernel-boot`` a directory with the files of ``kernelPath`` and ``initrdPath`` will do."""

    acceleration: Acceleration = "auto"
    """``auto``: KVM where it really works, else emulation. ``kvm``: fail where it does not. ``emulation``:
    never KVM.
    """

    wait: bool = True
    """Return when the VM is Running (or has ended); otherwise as soon as its launcher lives."""

    timeout: float = 120.0
    """Seconds to wait for Running before giving up and ending the VM."""

    config: Mapping[str, object] | None = None
    """Cluster configuration (``spec.configuration`` of a KubeVirt object) that adds to standalone mode's own.
    """


@dataclass(frozen=True)
class VmInfo:
    """A VM as ``kvnode ps`` shows it."""

    namespace: str
    name: str
    uid: str
    phase: str
    """``Scheduled``, ``Running``, ``Succeeded``, ``Failed`` or ``Unknown`` (its files cannot be read)."""

    reason: str
    """CamelCase word for the phase, or empty."""

    message: str
    """One line for people, or empty."""

    running: bool
    """Its first process lives."""

    domain_type: str
    """``kvm`` or ``qemu`` (emulation)."""

    domain_type_reason: str
    """Why it is that one."""

    created: str
    """RFC 3339 time, UTC, to the second; empty when unknown. So are the two that follow."""

    started: str
    ended: str

    pid: int | None
    """Process id, on the host, of the first process in the VM's namespaces; None when it does not live."""

    pids: Mapping[str, int]
    """Role (``launcher``, ``virtqemud``, ``virtlogd``, ``qemu`` …) to process id on the host, those that
    live.
    """

    memory_bytes: int
    """Memory of the guest."""

    vcpus: int

    notes: tuple[str, ...]
    """What standalone mode does in another way than a cluster would (user networking …)."""

    directory: str
    """Its part of the state directory."""

    console: str
    """Path of the serial console's socket, or empty."""

    libvirt_uri: str
    """URI by which other tools reach the VM's libvirt daemon while it runs, or empty."""


@dataclass(frozen=True)
class StopResult:
    """How a stop ended."""

    namespace: str
    name: str
    outcome: Literal["shutdown", "destroyed", "not-running"]
    """``shutdown``: the guest powered off in time. ``destroyed``: it was ended. ``not-running``: it had ended
    before.
    """

    seconds: float
    phase: str
    message: str
