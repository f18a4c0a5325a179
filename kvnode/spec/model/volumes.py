"""Volumes and networks of an instance (`core/v1/schema.go`)."""

from __future__ import annotations

from kvnode.spec.model.notation import Types

VOLUMES: Types = {
    "Volume": {
        "name": "string!",
        "hostDisk": "HostDisk",
        "persistentVolumeClaim": "PersistentVolumeClaimVolumeSource",
        "cloudInitNoCloud": "CloudInitNoCloudSource",
        "cloudInitConfigDrive": "CloudInitConfigDriveSource",
        "sysprep": "SysprepSource",
        "containerDisk": "ContainerDiskSource",
        "ephemeral": "EphemeralVolumeSource",
        "emptyDisk": "EmptyDiskSource",
        "dataVolume": "DataVolumeSource",
        "configMap": "ConfigMapVolumeSource",
        "secret": "SecretVolumeSource",
        "downwardAPI": "DownwardAPIVolumeSource",
        "serviceAccount": "ServiceAccountVolumeSource",
        "downwardMetrics": "DownwardMetricsVolumeSource",
        "memoryDump": "MemoryDumpVolumeSource",
        "containerPath": "ContainerPathVolumeSource",
    },
    "HostDisk": {
        "path": "string!",
        "type": "string!",
        "capacity": "quantity",
        "shared": "bool",
    },
    "PersistentVolumeClaimVolumeSource": {
        "claimName": "string!",
        "readOnly": "bool",
        "hotpluggable": "bool",
    },
    "CloudInitNoCloudSource": {
        "secretRef": "LocalObjectReference",
        "userDataBase64": "string",
        "userData": "string",
        "networkDataSecretRef": "LocalObjectReference",
        "networkDataBase64": "string",
        "networkData": "string",
    },
    "CloudInitConfigDriveSource": {
        "secretRef": "LocalObjectReference",
        "userDataBase64": "string",
        "userData": "string",
        "networkDataSecretRef": "LocalObjectReference",
        "networkDataBase64": "string",
        "networkData": "string",
    },
    "SysprepSource": {
        "secret": "LocalObjectReference",
        "configMap": "LocalObjectReference",
    },
    "ContainerDiskSource": {
        "image": "string!",
        "imagePullSecret": "string",
        "path": "string",
        "imagePullPolicy": "PullPolicy",
    },
    "EphemeralVolumeSource": {
        "persistentVolumeClaim": "CorePersistentVolumeClaimVolumeSource",
    },
    "EmptyDiskSource": {
        "capacity": "quantity!",
    },
    "DataVolumeSource": {
        "name": "string!",
        "hotpluggable": "bool",
    },
    "ConfigMapVolumeSource": {
        "name": "string",
        "optional": "bool",
        "volumeLabel": "string",
    },
    "SecretVolumeSource": {
        "secretName": "string",
        "optional": "bool",
        "volumeLabel": "string",
    },
    "DownwardAPIVolumeSource": {
        "fields": "[]DownwardAPIVolumeFile",
        "volumeLabel": "string",
    },
    "ServiceAccountVolumeSource": {
        "serviceAccountName": "string",
    },
    "DownwardMetricsVolumeSource": {},
    "MemoryDumpVolumeSource": {
        "claimName": "string!",
        "readOnly": "bool",
        "hotpluggable": "bool",
    },
    "ContainerPathVolumeSource": {
        "path": "string!",
        "readOnly": "bool",
    },
    "UtilityVolume": {
        "name": "string!",
        "claimName": "string!",
        "readOnly": "bool",
        "type": "string",
    },
    "Network": {
        "name": "string!",
        "pod": "PodNetwork",
        "multus": "MultusNetwork",
        "resourceClaim": "ClaimRequest",
    },
    "PodNetwork": {
        "vmNetworkCIDR": "string",
        "vmIPv6NetworkCIDR": "string",
    },
    "MultusNetwork": {
        "networkName": "string!",
        "default": "bool",
    },
    "ClaimRequest": {
        "claimName": "string",
        "requestName": "string",
    },
}
