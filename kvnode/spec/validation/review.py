"""One review of one VirtualMachineInstance: what the rules read, and the causes that they leave."""

from __future__ import annotations

from typing import Any, TypeAlias

from kvnode.api.quantity import Quantity
from kvnode.spec.cause import INVALID, NOT_SUPPORTED, REQUIRED, Cause
from kvnode.spec.config import ClusterConfig

Json: TypeAlias = dict[str, Any]
"""An object whose fields have the types of the model; quantities are `Quantity`, nulls are gone."""

ZERO = Quantity(0)


class Review:
    """A VMI that passed the schema, the cluster's configuration, and the causes found so far.

    Paths given to the methods are those below the spec (``domain.cpu.sockets``); ``[0].name`` stands for an
    index right behind the spec, which is how KubeVirt reports some.
    """

    def __init__(self, vmi: Json, architecture: str, config: ClusterConfig, pr_enabled: bool) -> None:
        self.config = config
        self.pr_enabled = pr_enabled  # SCSI persistent reservation
        self.metadata: Json = vmi.get("metadata", {})
        self.spec: Json = vmi.get("spec", {})
        self.domain: Json = self.spec.get("domain", {})
        self.devices: Json = self.domain.get("devices", {})
        self.cpu: Json | None = self.domain.get("cpu")
        self.memory: Json | None = self.domain.get("memory")
        self.disks: list[Json] = self.devices.get("disks", [])
        self.interfaces: list[Json] = self.devices.get("interfaces", [])
        self.networks: list[Json] = self.spec.get("networks", [])
        self.volumes: list[Json] = self.spec.get("volumes", [])
        self.architecture: str = self.spec.get("architecture") or architecture
        self.causes: list[Cause] = []

    def add(self, reason: str, path: str, message: str) -> None:
        """Add a cause for a path below the spec; "" is the spec itself."""
        separator = "." if path and not path.startswith("[") else ""
        self.causes.append(Cause(f"spec{separator}{path}", reason, message))

    def invalid(self, path: str, message: str) -> None:
        """Add a cause: the value cannot be."""
        self.add(INVALID, path, message)

    def required(self, path: str, message: str) -> None:
        """Add a cause: the value is missing."""
        self.add(REQUIRED, path, message)

    def not_supported(self, path: str, message: str) -> None:
        """Add a cause: the value is none of those allowed."""
        self.add(NOT_SUPPORTED, path, message)

    def resource(self, side: str, name: str) -> Quantity:
        """``domain.resources.<requests|limits>.<name>``, zero when it is not set."""
        quantity: Quantity = self.domain.get("resources", {}).get(side, {}).get(name, ZERO)
        return quantity

    @property
    def guest_memory(self) -> Quantity:
        """``domain.memory.guest`` in bytes, zero when it is not set."""
        quantity: Quantity = (self.memory or {}).get("guest", ZERO)
        return quantity

    @property
    def dedicated_cpus(self) -> bool:
        """Whether ``domain.cpu.dedicatedCpuPlacement`` is set."""
        return bool(self.cpu and self.cpu.get("dedicatedCpuPlacement"))


def vcpu_count(cpu: Json | None) -> int:
    """Number of vCPUs that a topology gives, 0 when it is empty (`pkg/util/hardware/hw_utils.go:87`).

    The product is a 32-bit one, as there.
    """
    count = 0
    for name in ("cores", "sockets", "threads"):
        part = (cpu or {}).get(name, 0)
        if part:
            count = (count * part if count else part) % 2**32
    return count


def feature_on(state: Json | None) -> bool:
    """Whether a feature state is there and not turned off: set without ``enabled`` counts as on."""
    return state is not None and state.get("enabled", True) is True
