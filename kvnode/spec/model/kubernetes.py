"""Types that the KubeVirt API embeds from Kubernetes: `core/v1` and `meta/v1` (`k8s.io/api` v0.34)."""

from __future__ import annotations

from collections.abc import Mapping

from kvnode.spec.model.notation import Types

ENUMS: Mapping[str, tuple[str, ...]] = {
    "DNSPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "LabelSelectorOperator": ("In", "NotIn", "Exists", "DoesNotExist"),
    "NodeInclusionPolicy": ("Honor", "Ignore"),
    "NodeSelectorOperator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
    "PullPolicy": ("Always", "Never", "IfNotPresent"),
    "TaintEffect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "TolerationOperator": ("Exists", "Equal"),
    "UnsatisfiableConstraintAction": ("DoNotSchedule", "ScheduleAnyway"),
    "URIScheme": ("HTTP", "HTTPS"),
    # KubeVirt's own: marked as enumerations in core/v1/schema.go:61,482 and types.go:3472.
    "MemLockRequirement": ("NotRequired", "Required"),
    "MigrationCompression": ("none", "zstd"),
    "RebootPolicy": ("Reboot", "Terminate"),
}
"""Enumerations that the API's schema itself checks. The empty string counts as not set."""

KUBERNETES: Types = {
    "ObjectMeta": {
        "name": "string",
        "generateName": "string",
        "namespace": "string",
        "selfLink": "string",
        "uid": "string",
        "resourceVersion": "string",
        "generation": "int64",
        "creationTimestamp": "time",
        "deletionTimestamp": "time",
        "deletionGracePeriodSeconds": "int64",
        "labels": "{}string",
        "annotations": "{}string",
        "ownerReferences": "[]OwnerReference",
        "finalizers": "[]string",
        "managedFields": "[]ManagedFieldsEntry",
    },
    "OwnerReference": {
        "apiVersion": "string!",
        "kind": "string!",
        "name": "string!",
        "uid": "string!",
        "controller": "bool",
        "blockOwnerDeletion": "bool",
    },
    "ManagedFieldsEntry": {
        "manager": "string",
        "operation": "string",
        "apiVersion": "string",
        "time": "time",
        "fieldsType": "string",
        "fieldsV1": "any",
        "subresource": "string",
    },
    "LabelSelector": {
        "matchLabels": "{}string",
        "matchExpressions": "[]LabelSelectorRequirement",
    },
    "LabelSelectorRequirement": {
        "key": "string!",
        "operator": "LabelSelectorOperator!",
        "values": "[]string",
    },
    "Affinity": {
        "nodeAffinity": "NodeAffinity",
        "podAffinity": "PodAffinity",
        "podAntiAffinity": "PodAntiAffinity",
    },
    "NodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": "NodeSelector",
        "preferredDuringSchedulingIgnoredDuringExecution": "[]PreferredSchedulingTerm",
    },
    "NodeSelector": {"nodeSelectorTerms": "[]NodeSelectorTerm!"},
    "PreferredSchedulingTerm": {
        "weight": "int32!",
        "preference": "NodeSelectorTerm!",
    },
    "NodeSelectorTerm": {
        "matchExpressions": "[]NodeSelectorRequirement",
        "matchFields": "[]NodeSelectorRequirement",
    },
    "NodeSelectorRequirement": {
        "key": "string!",
        "operator": "NodeSelectorOperator!",
        "values": "[]string",
    },
    "PodAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": "[]PodAffinityTerm",
        "preferredDuringSchedulingIgnoredDuringExecution": "[]WeightedPodAffinityTerm",
    },
    "PodAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": "[]PodAffinityTerm",
        "preferredDuringSchedulingIgnoredDuringExecution": "[]WeightedPodAffinityTerm",
    },
    "WeightedPodAffinityTerm": {
        "weight": "int32!",
        "podAffinityTerm": "PodAffinityTerm!",
    },
    "PodAffinityTerm": {
        "labelSelector": "LabelSelector",
        "namespaces": "[]string",
        "topologyKey": "string!",
        "namespaceSelector": "LabelSelector",
        "matchLabelKeys": "[]string",
        "mismatchLabelKeys": "[]string",
    },
    "Toleration": {
        "key": "string",
        "operator": "TolerationOperator",
        "value": "string",
        "effect": "TaintEffect",
        "tolerationSeconds": "int64",
    },
    "TopologySpreadConstraint": {
        "maxSkew": "int32!",
        "topologyKey": "string!",
        "whenUnsatisfiable": "UnsatisfiableConstraintAction!",
        "labelSelector": "LabelSelector",
        "minDomains": "int32",
        "nodeAffinityPolicy": "NodeInclusionPolicy",
        "nodeTaintsPolicy": "NodeInclusionPolicy",
        "matchLabelKeys": "[]string",
    },
    "PodDNSConfig": {
        "nameservers": "[]string",
        "searches": "[]string",
        "options": "[]PodDNSConfigOption",
    },
    "PodDNSConfigOption": {"name": "string", "value": "string"},
    "ExecAction": {"command": "[]string"},
    "HTTPGetAction": {
        "path": "string",
        "port": "intOrString!",
        "host": "string",
        "scheme": "URIScheme",
        "httpHeaders": "[]HTTPHeader",
    },
    "HTTPHeader": {"name": "string!", "value": "string!"},
    "TCPSocketAction": {"port": "intOrString!", "host": "string"},
    "LocalObjectReference": {"name": "string"},
    "CorePersistentVolumeClaimVolumeSource": {"claimName": "string!", "readOnly": "bool"},
    "DownwardAPIVolumeFile": {
        "path": "string!",
        "fieldRef": "ObjectFieldSelector",
        "resourceFieldRef": "ResourceFieldSelector",
        "mode": "int32",
    },
    "ObjectFieldSelector": {"apiVersion": "string", "fieldPath": "string!"},
    "ResourceFieldSelector": {
        "containerName": "string",
        "resource": "string!",
        "divisor": "quantity",
    },
    "TypedLocalObjectReference": {"apiGroup": "string", "kind": "string!", "name": "string!"},
    "TypedObjectReference": {
        "apiGroup": "string",
        "kind": "string!",
        "name": "string!",
        "namespace": "string",
    },
    "VolumeResourceRequirements": {"limits": "{}quantity", "requests": "{}quantity"},
    "PersistentVolumeClaimSpec": {
        "accessModes": "[]string",
        "selector": "LabelSelector",
        "resources": "VolumeResourceRequirements",
        "volumeName": "string",
        "storageClassName": "string",
        "volumeMode": "string",
        "dataSource": "TypedLocalObjectReference",
        "dataSourceRef": "TypedObjectReference",
        "volumeAttributesClassName": "string",
    },
}
