"""Defaulting of a VirtualMachineInstance, step by step, as an API server with KubeVirt's webhook does it.

The order is the reference's: some steps read what earlier ones wrote
(``pkg/defaults/defaults.go``, ``pkg/virt-api/webhooks/mutating-webhook/mutators/vmi-mutator.go:54-93``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.api import names
from kvnode.api.errors import FieldError
from kvnode.spec.config import ClusterConfig
from kvnode.spec.defaults import amd64, arm64, s390x
from kvnode.spec.defaults.features import default_acpi, default_feature_states, default_timers
from kvnode.spec.defaults.firmware import default_firmware
from kvnode.spec.defaults.hotplug import prepare_hotplug
from kvnode.spec.defaults.hyperv import require_hyperv_dependencies
from kvnode.spec.defaults.network import default_network
from kvnode.spec.defaults.probes import default_probes
from kvnode.spec.defaults.resources import (
    default_cpu_request,
    default_cpu_topology,
    default_guest_memory,
)
from kvnode.spec.defaults.storage import default_disk_targets, default_pull_policies, disks_for_volumes
from kvnode.spec.normal import normal_instance

NON_ROOT_USER = 107
"""The user `qemu` of the launcher image, which the VM's processes run as (``pkg/util/util.go``)."""


class DefaultingError(FieldError):
    """A VirtualMachineInstance, or the cluster's configuration, does not let itself be defaulted.

    `field` is the path of the field at fault; `message` says what would be right.
    """


def apply_defaults(
    vmi: Mapping[str, Any],
    architecture: str,
    config: ClusterConfig | Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a copy of `vmi` in which every field that has a default is set.

    Quantities come out in canonical form and null fields are dropped, as an API server would store them.
    Applying it again changes nothing.

    Args:
        vmi: a VirtualMachineInstance; it is not changed.
        architecture: that of a VM which names none: ``amd64``, ``arm64`` or ``s390x``.
        config: the cluster's settings, or ``spec.configuration`` of the KubeVirt object; None: none set.

    Raises:
        DefaultingError: a field has the wrong type, or the configuration allows no default for it.
    """
    if not isinstance(architecture, str):
        raise DefaultingError("architecture", "must be a string: amd64, arm64 or s390x")
    try:
        return _defaulted(vmi, architecture, ClusterConfig.of(config))
    except FieldError as error:
        raise DefaultingError(error.field, error.message) from None


def _defaulted(vmi: Mapping[str, Any], architecture: str, config: ClusterConfig) -> dict[str, Any]:
    made = normal_instance(vmi)
    spec = made["spec"]
    _default_spec(spec, architecture, config)
    _default_for_architecture(spec, config)
    _record_status(made)
    if config.live_update and spec["architecture"] != "arm64":
        prepare_hotplug(spec, config)
    _annotate(made, config)
    return made


def _default_spec(spec: dict[str, Any], architecture: str, config: ClusterConfig) -> None:
    """The steps that are the same on every architecture (``defaults.go:65-82,193-206``)."""
    domain = spec["domain"]
    if not spec.get("architecture"):
        spec["architecture"] = architecture or config.default_architecture
    machine = domain.setdefault("machine", {})
    if not machine.get("type"):
        machine["type"] = config.machine_type(spec["architecture"])
    default_cpu_request(domain, config)
    default_guest_memory(domain)
    default_cpu_topology(domain)
    default_pull_policies(spec)
    spec.setdefault("evictionStrategy", config.eviction_strategy)
    default_network(spec, config)
    disks_for_volumes(spec)
    default_acpi(spec)
    default_firmware(domain)
    default_disk_targets(domain["devices"])
    default_inputs(domain["devices"])
    default_probes(spec)
    default_timers(domain)
    default_feature_states(domain)
    require_hyperv_dependencies(domain)


def _default_for_architecture(spec: dict[str, Any], config: ClusterConfig) -> None:
    """The architecture's own steps; one that KubeVirt does not know is treated as amd64."""
    steps = {"arm64": arm64.default_domain, "s390x": s390x.default_domain}
    steps.get(spec["architecture"], amd64.default_domain)(spec["domain"])
    cpu = spec["domain"]["cpu"]
    if not cpu.get("model"):
        cpu["model"] = config.cpu_model or "host-model"


def default_inputs(devices: dict[str, Any]) -> None:
    """An input device is a USB tablet (``api/core/v1/defaults.go:122``)."""
    for device in devices.get("inputs", ()):
        device["bus"] = device.get("bus") or "usb"
        device["type"] = device.get("type") or "tablet"


def _record_status(vmi: dict[str, Any]) -> None:
    """Put into the status what hotplug later compares with (``defaults.go:150-171``)."""
    domain = vmi["spec"]["domain"]
    status = vmi.setdefault("status", {})
    guest = domain["memory"].get("guest")
    if guest is not None:
        status["memory"] = {"guestAtBoot": guest, "guestCurrent": guest, "guestRequested": guest}
    if "currentCPUTopology" not in status:
        cpu = domain["cpu"]
        status["currentCPUTopology"] = {
            name: cpu[name] for name in ("sockets", "cores", "threads") if name in cpu
        }


def _annotate(vmi: dict[str, Any], config: ClusterConfig) -> None:
    """Metadata and status that the mutating webhook adds (``vmi-mutator.go:54-93``)."""
    spec = vmi["spec"]
    annotations = vmi["metadata"].get("annotations") or {}
    if has_pcie_hotplug(spec):
        annotations.setdefault(names.PCI_TOPOLOGY_VERSION_ANNOTATION, names.PCI_TOPOLOGY_VERSION_V3)
    if "tdx" in spec["domain"].get("launchSecurity", ()) and config.qgs_socket_path:
        annotations[names.QGS_SOCKET_PATH_ANNOTATION] = config.qgs_socket_path
    if annotations:
        vmi["metadata"]["annotations"] = annotations
    if config.gate("Root"):
        vmi["status"].setdefault("runtimeUser", 0)
    else:
        vmi["status"]["runtimeUser"] = NON_ROOT_USER


def has_pcie_hotplug(spec: Mapping[str, Any]) -> bool:
    """Whether the machine has PCIe root ports to plug devices into (``defaults.go:382-397``)."""
    machine = spec["domain"]["machine"]["type"]
    return spec["architecture"] in ("amd64", "arm64", "") and ("q35" in machine or machine.startswith("virt"))
