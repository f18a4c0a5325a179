"""The VMI that a request is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.virt.domain_json.errors import DomainFormatError
from kvnode.virt.payloads.instance import read_instance

#: Seconds to shut down when a VMI names none (``staging/src/kubevirt.io/api/core/v1/types.go``).
DEFAULT_GRACE_SECONDS = 30

#: Bytes of a name of a file that is made longer yet: by ``.qcow2.staging``, at most.
_LONGEST_NAME = 230


@dataclass(frozen=True)
class Instance:
    """A VirtualMachineInstance as it came, and as it is read.

    ``data`` is its normal form (:func:`kvnode.spec.normal.normal_instance`): ``metadata``, ``spec``,
    ``spec.domain`` and ``spec.domain.devices`` are there. Nobody changes it.
    """

    json: bytes
    data: Mapping[str, Any]

    @classmethod
    def read(cls, json: bytes) -> Instance:
        """Read the JSON of a VMI; raises DomainFormatError (a ValueError) when it is none."""
        data = read_instance(json)
        _check_names(data["spec"])
        return cls(json, data)

    @property
    def namespace(self) -> str:
        """Its namespace; "" when there is none."""
        return str(self.data["metadata"].get("namespace") or "")

    @property
    def name(self) -> str:
        """Its name; "" when there is none."""
        return str(self.data["metadata"].get("name") or "")

    @property
    def uid(self) -> str:
        """Its UID; "" when there is none."""
        return str(self.data["metadata"].get("uid") or "")

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self.data["metadata"].get("annotations") or {}

    @property
    def spec(self) -> Mapping[str, Any]:
        """``spec``."""
        spec: Mapping[str, Any] = self.data["spec"]
        return spec

    @property
    def domain(self) -> Mapping[str, Any]:
        """``spec.domain``."""
        domain: Mapping[str, Any] = self.spec["domain"]
        return domain

    @property
    def devices(self) -> Mapping[str, Any]:
        """``spec.domain.devices``."""
        devices: Mapping[str, Any] = self.domain["devices"]
        return devices

    @property
    def status(self) -> Mapping[str, Any]:
        """``status``."""
        return self.data.get("status") or {}

    @cached_property
    def volume_status(self) -> Mapping[str, Mapping[str, Any]]:
        """``status.volumeStatus`` by volume."""
        return {entry["name"]: entry for entry in self.status.get("volumeStatus") or [] if entry.get("name")}

    @property
    def cpu(self) -> Mapping[str, Any]:
        """``spec.domain.cpu``."""
        return self.domain.get("cpu") or {}

    @property
    def dedicated_cpus(self) -> bool:
        """Whether its CPUs are its own."""
        return bool(self.cpu.get("dedicatedCpuPlacement"))

    @property
    def phase(self) -> str:
        """``status.phase``."""
        return str(self.status.get("phase") or "")

    @property
    def running(self) -> bool:
        """Whether it is known to run."""
        return self.phase == "Running"

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def starts_paused(self) -> bool:
        """Whether ``spec.startStrategy`` asks for a paused start."""
        return self.spec.get("startStrategy") == "Paused"

    @property
    def grace_seconds(self) -> int:
        """Seconds that it may take to shut down."""
        seconds = self.spec.get("terminationGracePeriodSeconds")
        return DEFAULT_GRACE_SECONDS if seconds is None else int(seconds)

    def condition(self, kind: str) -> bool:
        """Whether a condition is there and true."""
        return any(
            entry.get("type") == kind and entry.get("status") == "True"
            for entry in self.status.get("conditions") or []
        )

    def vcpus(self) -> int:
        """Number of virtual CPUs (``pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go:297``)."""
        named = [int(self.cpu.get(part) or 0) for part in ("cores", "sockets", "threads")]
        if any(named):
            cores, sockets, threads = (max(number, 1) for number in named)
            return cores * sockets * threads
        resources = self.domain.get("resources") or {}
        for kind in ("limits", "requests"):
            asked = (resources.get(kind) or {}).get("cpu")
            if asked is not None:
                return max(Quantity(asked).value, 1)
        return 1


def _check_names(spec: Mapping[str, Any]) -> None:
    """Names are what files and devices are found by, here and in the pod; raises DomainFormatError."""
    devices = spec["domain"]["devices"]
    for path, entries in (
        ("spec.volumes", spec.get("volumes")),
        ("spec.networks", spec.get("networks")),
        ("spec.domain.devices.disks", devices.get("disks")),
        ("spec.domain.devices.interfaces", devices.get("interfaces")),
    ):
        for position, entry in enumerate(entries or ()):
            name = entry.get("name")
            if not name:
                raise DomainFormatError(f"{path}[{position}].name", "is missing")
            if "/" in name or "\0" in name or name in (".", "..") or len(name.encode()) > _LONGEST_NAME:
                raise DomainFormatError(f"{path}[{position}].name", f"{name[:40]!r} is no name of a file")
