"""A VirtualMachine: the template, its life cycle and its status (`core/v1/types.go`)."""

from __future__ import annotations

from kvnode.spec.model.notation import Types

MACHINE: Types = {
    "VirtualMachine": {
        "apiVersion": "string",
        "kind": "string",
        "metadata": "ObjectMeta",
        "spec": "VirtualMachineSpec!",
        "status": "VirtualMachineStatus",
    },
    "VirtualMachineSpec": {
        "running": "bool",
        "runStrategy": "string",
        "instancetype": "InstancetypeMatcher",
        "preference": "PreferenceMatcher",
        "template": "VirtualMachineInstanceTemplateSpec!",
        "dataVolumeTemplates": "[]DataVolumeTemplateSpec",
        "updateVolumesStrategy": "string",
    },
    "InstancetypeMatcher": {
        "name": "string",
        "kind": "string",
        "revisionName": "string",
        "inferFromVolume": "string",
        "inferFromVolumeFailurePolicy": "string",
    },
    "PreferenceMatcher": {
        "name": "string",
        "kind": "string",
        "revisionName": "string",
        "inferFromVolume": "string",
        "inferFromVolumeFailurePolicy": "string",
    },
    "VirtualMachineInstanceTemplateSpec": {
        "metadata": "ObjectMeta",
        "spec": "VirtualMachineInstanceSpec",
    },
    "DataVolumeTemplateSpec": {
        "apiVersion": "string",
        "kind": "string",
        "metadata": "ObjectMeta",
        "spec": "DataVolumeSpec!",
        "status": "DataVolumeTemplateDummyStatus",
    },
    "DataVolumeTemplateDummyStatus": {},
    "VirtualMachineStatus": {
        "snapshotInProgress": "string",
        "restoreInProgress": "string",
        "created": "bool",
        "ready": "bool",
        "printableStatus": "string",
        "conditions": "[]VirtualMachineCondition",
        "stateChangeRequests": "[]VirtualMachineStateChangeRequest",
        "volumeRequests": "[]VirtualMachineVolumeRequest",
        "volumeSnapshotStatuses": "[]VolumeSnapshotStatus",
        "startFailure": "VirtualMachineStartFailure",
        "memoryDumpRequest": "VirtualMachineMemoryDumpRequest",
        "observedGeneration": "int64",
        "desiredGeneration": "int64",
        "runStrategy": "string",
        "volumeUpdateState": "VolumeUpdateState",
        "changedBlockTracking": "ChangedBlockTrackingStatus",
        "instancetypeRef": "InstancetypeStatusRef",
        "preferenceRef": "InstancetypeStatusRef",
    },
    "VirtualMachineCondition": {
        "type": "string!",
        "status": "string!",
        "lastProbeTime": "time",
        "lastTransitionTime": "time",
        "reason": "string",
        "message": "string",
    },
    "VirtualMachineStateChangeRequest": {
        "action": "string!",
        "data": "{}string",
        "uid": "string",
    },
    "VirtualMachineVolumeRequest": {
        "addVolumeOptions": "AddVolumeOptions",
        "removeVolumeOptions": "RemoveVolumeOptions",
    },
    "AddVolumeOptions": {
        "name": "string!",
        "disk": "Disk!",
        "volumeSource": "HotplugVolumeSource!",
        "dryRun": "[]string",
    },
    "HotplugVolumeSource": {
        "persistentVolumeClaim": "PersistentVolumeClaimVolumeSource",
        "dataVolume": "DataVolumeSource",
    },
    "RemoveVolumeOptions": {
        "name": "string!",
        "dryRun": "[]string",
    },
    "VolumeSnapshotStatus": {
        "name": "string!",
        "enabled": "bool!",
        "reason": "string",
    },
    "VirtualMachineStartFailure": {
        "consecutiveFailCount": "int64",
        "lastFailedVMIUID": "string",
        "retryAfterTimestamp": "time",
    },
    "VirtualMachineMemoryDumpRequest": {
        "claimName": "string!",
        "phase": "string!",
        "remove": "bool",
        "startTimestamp": "time",
        "endTimestamp": "time",
        "fileName": "string",
        "message": "string",
    },
    "VolumeUpdateState": {
        "volumeMigrationState": "VolumeMigrationState",
    },
    "VolumeMigrationState": {
        "migratedVolumes": "[]StorageMigratedVolumeInfo",
    },
    "InstancetypeStatusRef": {
        "name": "string",
        "kind": "string",
        "controllerRevisionRef": "ControllerRevisionRef",
        "inferFromVolume": "string",
        "inferFromVolumeFailurePolicy": "string",
    },
    "ControllerRevisionRef": {
        "name": "string",
    },
}
