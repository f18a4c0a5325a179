"""What a cluster's administrator has set: ``spec.configuration`` of the KubeVirt object.

The defaults are those of v1.9 (``pkg/virt-config/virt-config.go:43-112``, ``configuration.go:161-285``).
A zero or an empty value in the object counts as absent, as it does when the reference overlays it on its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvnode.api import gates
from kvnode.api.errors import FieldError
from kvnode.api.quantity import Quantity
from kvnode.spec.fields import (
    get_bool,
    get_int,
    get_list,
    get_mapping,
    get_quantity,
    get_string,
    get_strings,
    wrong_type,
)

_MACHINE_TYPES = {"amd64": "q35", "arm64": "virt", "s390x": "s390-ccw-virtio"}
_OVMF_PATHS = {"amd64": "/usr/share/edk2/ovmf", "arm64": "/usr/share/AAVMF", "s390x": ""}
_EMULATED_MACHINES = {
    "amd64": ("q35*", "pc-q35*"),
    "arm64": ("virt*",),
    "s390x": ("s390-ccw-virtio*",),
}
_ROOT = "spec.configuration."


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The cluster's settings, read once; never changed afterwards.

    ``ClusterConfig()`` is a cluster in which nothing was set.
    """

    feature_gates: frozenset[str] = frozenset()
    """``developerConfiguration.featureGates``: turned on. Ask `gate`, not this."""

    disabled_feature_gates: frozenset[str] = frozenset()
    """``developerConfiguration.disabledFeatureGates``: turned off. Ask `gate`, not this."""

    default_architecture: str = ""
    """Architecture of a VM that names none; "": the caller's, which in a cluster is the API server's."""

    machine_type_override: str = ""
    """``machineType``: machine type for every architecture. Ask `machine_type`, not this."""

    machine_types: Mapping[str, str] = field(default_factory=dict)
    """``architectureConfiguration.<arch>.machineType``. Ask `machine_type`, not this."""

    emulated_machines_override: tuple[str, ...] | None = None
    """``emulatedMachines``: permitted patterns, whatever the architecture. Ask `emulated_machines`."""

    emulated_machines_by_arch: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """``architectureConfiguration.<arch>.emulatedMachines``. Ask `emulated_machines`, not this."""

    cpu_model: str = ""
    """``cpuModel`` for VMs that name none; "": host-model."""

    cpu_request: Quantity = Quantity("100m")  # noqa: RUF009 - a Quantity is immutable
    """``cpuRequest`` of a VM that asks for none. The built-in 100m is not written into VMs."""

    image_pull_policy: str = "IfNotPresent"
    """``imagePullPolicy`` of the launcher's own images."""

    eviction_strategy: str = "None"
    """``evictionStrategy`` of VMs that name none."""

    default_network_interface: str = "bridge"
    """``network.defaultNetworkInterface``: binding of the interface that a VM without any gets."""

    permit_bridge_on_pod_network: bool = True
    """``network.permitBridgeInterfaceOnPodNetwork``."""

    network_bindings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """``network.binding``: binding plugins by name, as written."""

    permitted_host_devices: Mapping[str, Any] | None = None
    """``permittedHostDevices`` as written; None: not configured."""

    use_emulation: bool = False
    """``developerConfiguration.useEmulation``: run without /dev/kvm where it is absent."""

    memory_overcommit: int = 100
    """``developerConfiguration.memoryOvercommit``: guest memory in per cent of the request."""

    cpu_allocation_ratio: int = 10
    """``developerConfiguration.cpuAllocationRatio``: vCPUs for each CPU requested."""

    node_selectors: Mapping[str, str] = field(default_factory=dict)
    """``developerConfiguration.nodeSelectors``, added to every launcher pod's."""

    minimum_cluster_tsc_frequency: int | None = None
    """``developerConfiguration.minimumClusterTSCFrequency``, Hz; None: found out from the nodes."""

    additional_guest_memory_overhead_ratio: str = ""
    """``additionalGuestMemoryOverheadRatio``: a decimal factor on the computed overhead."""

    max_hotplug_ratio: int = 4
    """``liveUpdateConfiguration.maxHotplugRatio``: maximum over initial sockets and guest memory."""

    max_cpu_sockets: int = 0
    """``liveUpdateConfiguration.maxCpuSockets``; 0: by the ratio."""

    max_guest: Quantity | None = None
    """``liveUpdateConfiguration.maxGuest``, bytes; None: by the ratio."""

    live_update: bool = True
    """Whether ``vmRolloutStrategy`` is LiveUpdate, so that VMs are made ready for CPU and memory hotplug."""

    mem_balloon_stats_period: int = 10
    """``memBalloonStatsPeriod``, seconds; 0: no statistics."""

    smbios: Mapping[str, Any] = field(
        default_factory=lambda: {"family": "KubeVirt", "manufacturer": "KubeVirt", "product": "None"}
    )
    """``smbios``: what the guest's system information says."""

    support_container_resources: tuple[Mapping[str, Any], ...] = ()
    """``supportContainerResources``: requests and limits of the side containers, as written."""

    disable_serial_console_log: bool = False
    """Whether ``virtualMachineOptions.disableSerialConsoleLog`` is there."""

    disable_free_page_reporting: bool = False
    """Whether ``virtualMachineOptions.disableFreePageReporting`` is there."""

    default_runtime_class: str = ""
    """``defaultRuntimeClass`` of launcher pods."""

    selinux_launcher_type: str = ""
    """``selinuxLauncherType`` of launcher pods."""

    ovmf_path_override: str = ""
    """``ovmfPath``: firmware for every architecture. Ask `ovmf_path`, not this."""

    ovmf_paths: Mapping[str, str] = field(default_factory=dict)
    """``architectureConfiguration.<arch>.ovmfPath``. Ask `ovmf_path`, not this."""

    disk_verification_memory_limit: int = 2000 * 2**20
    """``developerConfiguration.diskVerification.memoryLimit``, bytes: for looking into a disk image."""

    less_pvc_space_toleration: int = 10
    """``developerConfiguration.pvcTolerateLessSpaceUpToPercent``: how much smaller a disk may be made."""

    minimum_reserve_pvc_bytes: int = 128 * 2**10
    """``developerConfiguration.minimumReservePVCBytes``: left free beside a disk that is made."""

    launcher_log_verbosity: int = 2
    """``developerConfiguration.logVerbosity.virtLauncher``."""

    seccomp_profile: Mapping[str, Any] | None = None
    """``seccompConfiguration.virtualMachineInstanceProfile.customProfile`` as a pod's security context has it."""

    supported_guest_agent_versions: tuple[str, ...] = ("2.*", "3.*", "4.*", "5.*")
    """``supportedGuestAgentVersions``, as patterns."""

    qgs_socket_path: str = "/var/run/tdx-qgs/qgs.socket"
    """``confidentialCompute.tdx.attestation.qgsSocketPath``."""

    tdx_attestation_enforced: bool = False
    """``confidentialCompute.tdx.attestation.enforced``."""

    persistent_reservation_set: bool | None = None
    """``persistentReservationConfiguration.enabled``. Ask `persistent_reservation`, not this."""

    @classmethod
    def from_mapping(cls, config: Mapping[str, Any] | None) -> ClusterConfig:
        """Read ``spec.configuration`` of a KubeVirt object; None or ``{}`` give the defaults.

        Unknown fields are ignored, so that a newer object can be read. The values kept "as written" are those
        of `config` itself: do not change it afterwards.

        Raises:
            FieldError: a field has the wrong type or an impossible value.
        """
        if config is None:
            return cls()
        if not isinstance(config, Mapping):
            raise wrong_type("spec.configuration", "a mapping", config)
        values: dict[str, Any] = {}
        for read in (_general, _architectures, _network, _developer, _launcher, _live_update, _options):
            values.update({name: value for name, value in read(config).items() if value is not None})
        return cls(**values)

    @classmethod
    def of(cls, config: ClusterConfig | Mapping[str, Any] | None) -> ClusterConfig:
        """`config` itself if it has been read already, else `from_mapping` of it."""
        return config if isinstance(config, ClusterConfig) else cls.from_mapping(config)

    def gate(self, name: str) -> bool:
        """Whether feature gate `name` is on; a gate that v1.9 does not know is off.

        Generally available beats enabled, which beats disabled, which beats on by default
        (``featuregate/feature-gates.go:104``).
        """
        if name in gates.ALWAYS_ON:
            return True
        if name not in gates.DEFAULT_ON and name not in gates.DEFAULT_OFF:
            return False
        if name in self.feature_gates:
            return True
        return name in gates.DEFAULT_ON and name not in self.disabled_feature_gates

    @property
    def persistent_reservation(self) -> bool:
        """Whether SCSI persistent reservations are on; without a word, where the old gate is still listed."""
        listed = "PersistentReservation" in self.feature_gates
        return listed if self.persistent_reservation_set is None else self.persistent_reservation_set

    def machine_type(self, architecture: str) -> str:
        """Machine type of a VM that names none; an unknown architecture counts as amd64."""
        arch = architecture if architecture in _MACHINE_TYPES else "amd64"
        return self.machine_type_override or self.machine_types.get(arch) or _MACHINE_TYPES[arch]

    def ovmf_path(self, architecture: str) -> str:
        """Directory of the UEFI firmware in the launcher's image; an unknown architecture counts as amd64."""
        arch = architecture if architecture in _OVMF_PATHS else "amd64"
        return self.ovmf_path_override or self.ovmf_paths.get(arch) or _OVMF_PATHS[arch]

    def emulated_machines(self, architecture: str) -> tuple[str, ...]:
        """Patterns of the machine types that a VM may name; an unknown architecture counts as amd64."""
        if self.emulated_machines_override is not None:
            return self.emulated_machines_override
        arch = architecture if architecture in _EMULATED_MACHINES else "amd64"
        return self.emulated_machines_by_arch.get(arch) or _EMULATED_MACHINES[arch]


def _general(config: Mapping[str, Any]) -> dict[str, Any]:
    policy = get_string(config, "imagePullPolicy", _ROOT)
    if policy not in ("", "Always", "Never", "IfNotPresent"):
        raise FieldError(_ROOT + "imagePullPolicy", "must be Always, Never or IfNotPresent")
    path = _ROOT + "smbios."
    smbios = get_mapping(config, "smbios", _ROOT)
    smbios = {str(key): get_string(smbios, key, path) for key in smbios}
    return {
        "cpu_model": get_string(config, "cpuModel", _ROOT),
        "cpu_request": get_quantity(config, "cpuRequest", _ROOT),
        "image_pull_policy": policy or None,
        "eviction_strategy": get_string(config, "evictionStrategy", _ROOT) or None,
        "permitted_host_devices": _optional_mapping(config, "permittedHostDevices"),
        "additional_guest_memory_overhead_ratio": get_string(
            config, "additionalGuestMemoryOverheadRatio", _ROOT
        ),
        "mem_balloon_stats_period": get_int(config, "memBalloonStatsPeriod", _ROOT),
        "smbios": {"family": "KubeVirt", "manufacturer": "KubeVirt", "product": "None"} | smbios,
        "support_container_resources": tuple(_mappings(config, "supportContainerResources", _ROOT)),
        "default_runtime_class": get_string(config, "defaultRuntimeClass", _ROOT),
        "selinux_launcher_type": get_string(config, "selinuxLauncherType", _ROOT),
        "supported_guest_agent_versions": tuple(get_strings(config, "supportedGuestAgentVersions", _ROOT))
        or None,
    }


def _architectures(config: Mapping[str, Any]) -> dict[str, Any]:
    path = _ROOT + "architectureConfiguration."
    section = get_mapping(config, "architectureConfiguration", _ROOT)
    machine_types: dict[str, str] = {}
    machines: dict[str, tuple[str, ...]] = {}
    firmware: dict[str, str] = {}
    for arch in _MACHINE_TYPES:
        settings = get_mapping(section, arch, path)
        machine_types[arch] = get_string(settings, "machineType", f"{path}{arch}.")
        machines[arch] = tuple(get_strings(settings, "emulatedMachines", f"{path}{arch}."))
        firmware[arch] = get_string(settings, "ovmfPath", f"{path}{arch}.")
    return {
        "default_architecture": get_string(section, "defaultArchitecture", path),
        "machine_types": machine_types,
        "emulated_machines_by_arch": machines,
        "ovmf_paths": firmware,
        "ovmf_path_override": get_string(config, "ovmfPath", _ROOT),
        "machine_type_override": get_string(config, "machineType", _ROOT),
        "emulated_machines_override": tuple(get_strings(config, "emulatedMachines", _ROOT)) or None,
    }


def _network(config: Mapping[str, Any]) -> dict[str, Any]:
    path = _ROOT + "network."
    section = get_mapping(config, "network", _ROOT)
    binding = get_string(section, "defaultNetworkInterface", path)
    if binding not in ("", "bridge", "masquerade", "slirp"):
        raise FieldError(path + "defaultNetworkInterface", "must be bridge or masquerade")
    plugins = get_mapping(section, "binding", path)
    return {
        "default_network_interface": binding or None,
        "permit_bridge_on_pod_network": get_bool(section, "permitBridgeInterfaceOnPodNetwork", path),
        "network_bindings": {name: get_mapping(plugins, name, path + "binding.") for name in plugins},
    }


def _developer(config: Mapping[str, Any]) -> dict[str, Any]:
    path = _ROOT + "developerConfiguration."
    section = get_mapping(config, "developerConfiguration", _ROOT)
    selectors = get_mapping(section, "nodeSelectors", path)
    return {
        "feature_gates": frozenset(get_strings(section, "featureGates", path)),
        "disabled_feature_gates": frozenset(get_strings(section, "disabledFeatureGates", path)),
        "use_emulation": get_bool(section, "useEmulation", path),
        "memory_overcommit": get_int(section, "memoryOvercommit", path) or None,
        "cpu_allocation_ratio": get_int(section, "cpuAllocationRatio", path) or None,
        "node_selectors": {key: get_string(selectors, key, path + "nodeSelectors.") for key in selectors},
        "minimum_cluster_tsc_frequency": get_int(section, "minimumClusterTSCFrequency", path, high=2**63 - 1),
        "less_pvc_space_toleration": get_int(section, "pvcTolerateLessSpaceUpToPercent", path, high=100)
        or None,
        "minimum_reserve_pvc_bytes": get_int(section, "minimumReservePVCBytes", path, high=2**64 - 1) or None,
    }


def _launcher(config: Mapping[str, Any]) -> dict[str, Any]:
    path = _ROOT + "developerConfiguration."
    section = get_mapping(config, "developerConfiguration", _ROOT)
    verification = get_mapping(section, "diskVerification", path)
    limit = get_quantity(verification, "memoryLimit", path + "diskVerification.")
    verbosity = get_mapping(section, "logVerbosity", path)
    return {
        "disk_verification_memory_limit": None if limit is None else limit.value,
        "launcher_log_verbosity": get_int(verbosity, "virtLauncher", path + "logVerbosity.") or None,
        "seccomp_profile": _seccomp_profile(config),
    }


def _seccomp_profile(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """``template.go:700-716``."""
    path = _ROOT + "seccompConfiguration."
    section = get_mapping(config, "seccompConfiguration", _ROOT)
    instances = get_mapping(section, "virtualMachineInstanceProfile", path)
    path += "virtualMachineInstanceProfile."
    custom = get_mapping(instances, "customProfile", path)
    path += "customProfile."
    if custom.get("localhostProfile") is not None:
        return {"type": "Localhost", "localhostProfile": get_string(custom, "localhostProfile", path)}
    return {"type": "RuntimeDefault"} if get_bool(custom, "runtimeDefaultProfile", path) else None


def _live_update(config: Mapping[str, Any]) -> dict[str, Any]:
    path = _ROOT + "liveUpdateConfiguration."
    section = get_mapping(config, "liveUpdateConfiguration", _ROOT)
    strategy = get_string(config, "vmRolloutStrategy", _ROOT)
    return {
        "max_hotplug_ratio": get_int(section, "maxHotplugRatio", path) or None,
        "max_cpu_sockets": get_int(section, "maxCpuSockets", path),
        "max_guest": get_quantity(section, "maxGuest", path),
        "live_update": strategy in ("", "LiveUpdate"),
    }


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    options = get_mapping(config, "virtualMachineOptions", _ROOT)
    path = _ROOT + "confidentialCompute."
    tdx = get_mapping(get_mapping(config, "confidentialCompute", _ROOT), "tdx", path)
    attestation = get_mapping(tdx, "attestation", path + "tdx.")
    socket = get_string(attestation, "qgsSocketPath", path + "tdx.attestation.")
    reservations = get_mapping(config, "persistentReservationConfiguration", _ROOT)
    return {
        "disable_serial_console_log": options.get("disableSerialConsoleLog") is not None,
        "disable_free_page_reporting": options.get("disableFreePageReporting") is not None,
        # "" is a setting of its own: no socket.
        "qgs_socket_path": None if attestation.get("qgsSocketPath") is None else socket,
        "tdx_attestation_enforced": get_bool(attestation, "enforced", path + "tdx.attestation."),
        "persistent_reservation_set": get_bool(
            reservations, "enabled", _ROOT + "persistentReservationConfiguration."
        ),
    }


def _optional_mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    return None if parent.get(key) is None else get_mapping(parent, key, _ROOT)


def _mappings(parent: Mapping[str, Any], key: str, path: str) -> list[Mapping[str, Any]]:
    items = get_list(parent, key, path)
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise wrong_type(f"{path}{key}[{index}]", "a mapping", item)
    return items
