"""Phases of a VirtualMachineInstance, and the conditions that say more than its phase.

``staging/src/kubevirt.io/api/core/v1/types.go:690-740,1103-1122``
"""

from enum import StrEnum


class Phase(StrEnum):
    """``status.phase``: where a VirtualMachineInstance is in its life."""

    UNSET = ""
    PENDING = "Pending"
    SCHEDULING = "Scheduling"
    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    """libvirt has started the guest; whether its system is up is another matter."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    WAITING_FOR_SYNC = "WaitingForSync"
    UNKNOWN = "Unknown"

    @property
    def is_final(self) -> bool:
        """Whether the VirtualMachineInstance will never run again."""
        return self in (Phase.SUCCEEDED, Phase.FAILED)


class ConditionType(StrEnum):
    """``status.conditions[].type``."""

    PROVISIONING = "Provisioning"
    READY = "Ready"
    SYNCHRONIZED = "Synchronized"
    PAUSED = "Paused"
    AGENT_CONNECTED = "AgentConnected"
    ACCESS_CREDENTIALS_SYNCHRONIZED = "AccessCredentialsSynchronized"
    AGENT_VERSION_NOT_SUPPORTED = "AgentVersionNotSupported"
    LIVE_MIGRATABLE = "LiveMigratable"
    STORAGE_LIVE_MIGRATABLE = "StorageLiveMigratable"
    HOT_VCPU_CHANGE = "HotVCPUChange"
    HOT_MEMORY_CHANGE = "HotMemoryChange"
    VOLUMES_CHANGE = "VolumesChange"
    DATA_VOLUMES_READY = "DataVolumesReady"
    MIGRATION_REQUIRED = "MigrationRequired"
    EVICTION_REQUESTED = "EvictionRequested"
    SOFTWARE_EMULATION = "SoftwareEmulation"
