"""All that a pod is rendered from, read and checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.api.names import DEPRECATED_NON_ROOT_ANNOTATION
from kvnode.api.quantity import Quantity
from kvnode.spec.config import ClusterConfig
from kvnode.spec.fields import wrong_type
from kvnode.spec.normal import normal_instance
from kvnode.spec.overhead import Term, memory_overhead_terms, wants_guaranteed
from kvnode.spec.pod.settings import Claim, LauncherSettings, Surroundings
from kvnode.spec.pod.sidecars import HookSidecar, hook_sidecars

NON_ROOT_USER = 107
"""The user ``qemu`` of the launcher's image (``pkg/util/util.go``)."""


@dataclass(frozen=True)
class PodSource:
    """One VMI with its surroundings; the parts of the renderer read from it."""

    vmi: Mapping[str, Any]
    """In the API server's form: `normal_instance`."""

    architecture: str
    """Of a VMI that names none."""

    config: ClusterConfig
    settings: LauncherSettings
    surroundings: Surroundings
    claims: Mapping[str, Claim] | None
    """By name; None: every claim is there, and a file system."""

    @classmethod
    def read(
        cls,
        vmi: Mapping[str, Any],
        architecture: str,
        config: Mapping[str, Any] | ClusterConfig | None,
        pvcs: Mapping[str, bool | Claim] | None,
        *,
        settings: LauncherSettings,
        surroundings: Surroundings,
    ) -> PodSource:
        """Read the arguments of `render_launcher_pod`.

        Raises:
            FieldError: a field has the wrong type, or the VMI has no name or namespace.
        """
        normal = normal_instance(vmi)
        for name in ("name", "namespace"):
            if not normal["metadata"].get(name):
                raise FieldError(f"metadata.{name}", "must be set: a pod belongs to a VM of that name")
        claims = None if pvcs is None else {name: _claim(name, claim) for name, claim in pvcs.items()}
        return cls(normal, architecture, ClusterConfig.of(config), settings, surroundings, claims)

    @property
    def name(self) -> str:
        return str(self.vmi["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.vmi["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        return str(self.vmi["metadata"].get("uid", ""))

    @property
    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self.vmi["metadata"].get("labels", {})
        return labels

    @property
    def annotations(self) -> Mapping[str, str]:
        annotations: Mapping[str, str] = self.vmi["metadata"].get("annotations", {})
        return annotations

    @property
    def spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.vmi["spec"]
        return spec

    @property
    def status(self) -> Mapping[str, Any]:
        status: Mapping[str, Any] = self.vmi.get("status", {})
        return status

    @property
    def domain(self) -> Mapping[str, Any]:
        domain: Mapping[str, Any] = self.spec["domain"]
        return domain

    @property
    def devices(self) -> Mapping[str, Any]:
        devices: Mapping[str, Any] = self.domain["devices"]
        return devices

    @property
    def volumes(self) -> list[Mapping[str, Any]]:
        volumes: list[Mapping[str, Any]] = self.spec.get("volumes", [])
        return volumes

    @property
    def interfaces(self) -> list[Mapping[str, Any]]:
        interfaces: list[Mapping[str, Any]] = self.devices.get("interfaces", [])
        return interfaces

    @property
    def kernel_boot(self) -> Mapping[str, Any] | None:
        """The image that kernel and initrd come from (``pkg/util/util.go:97``)."""
        container: Mapping[str, Any] | None = (
            self.domain.get("firmware", {}).get("kernelBoot", {}).get("container")
        )
        return container

    @property
    def non_root(self) -> bool:
        """Whether the launcher runs without root's rights (``pkg/vmitrait/vmitrait.go:26``)."""
        return DEPRECATED_NON_ROOT_ANNOTATION in self.annotations or bool(self.status.get("runtimeUser"))

    @property
    def user(self) -> int:
        """The user that the launcher runs as."""
        return NON_ROOT_USER if self.non_root else 0

    @property
    def dedicated_cpus(self) -> bool:
        return bool(self.domain.get("cpu", {}).get("dedicatedCpuPlacement", False))

    @cached_property
    def guaranteed(self) -> bool:
        """Whether the pod is to be of the Guaranteed class, which asks it of every container."""
        return self.dedicated_cpus or wants_guaranteed(self.domain.get("resources", {}))

    @property
    def image_volumes(self) -> bool:
        """Whether container disks come as image volumes, not by containers of their own."""
        return self.config.gate("ImageVolume")

    @cached_property
    def sidecars(self) -> list[HookSidecar]:
        return hook_sidecars(self.annotations, self.interfaces, self.config)

    @cached_property
    def overhead_terms(self) -> list[Term]:
        return memory_overhead_terms(
            self.vmi,
            self.architecture,
            config=self.config,
            guest_page_tables=self.settings.guest_page_tables,
        )

    @cached_property
    def overhead(self) -> Quantity:
        """The memory overhead; page tables, if any, make it a decimal number and not one of Mi."""
        total = sum(term.bytes for term in self.overhead_terms)
        decimal = any(term.name == "page-tables" for term in self.overhead_terms)
        return Quantity(total) if decimal else Quantity.from_bytes(total)


def _claim(name: str, claim: object) -> Claim:
    if isinstance(claim, bool):
        return Claim(block=claim)
    if not isinstance(claim, Claim):
        raise wrong_type(f"pvcs.{name}", "true (a block device), false (a file system) or a Claim", claim)
    return claim
