"""Plugins of a cluster (``staging/src/kubevirt.io/api/plugin/v1alpha1/types.go:33``)."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import DURATION, TEXT
from kvnode.virt.domain_json.schema.objectmeta import OBJECT_META
from kvnode.virt.domain_json.shape import empties, many, optional, struct, text, value
from kvnode.virt.payloads.kubernetes import TYPE_META

CEL_DOMAIN_HOOK = struct(text("expression"))
SIDECAR_DOMAIN_HOOK = struct(text("socketPath"))
DOMAIN_HOOK = struct(
    *empties(
        optional("cel", "", CEL_DOMAIN_HOOK),
        optional("sidecar", "", SIDECAR_DOMAIN_HOOK),
        text("condition"),
        text("failureStrategy"),
        optional("timeout", "", DURATION),
    )
)
NODE_HOOK = struct(
    text("socket"),
    many("permittedHooks", "", TEXT),
    *empties(text("condition"), text("failureStrategy"), optional("timeout", "", DURATION)),
)
ADMISSION_REFERENCE = struct(text("name"))
PLUGIN_SPEC = struct(
    *empties(
        text("condition"),
        text("failureStrategy"),
        many("domainHooks", "", DOMAIN_HOOK),
        many("nodeHooks", "", NODE_HOOK),
        many("mutatingAdmissionPolicies", "", ADMISSION_REFERENCE),
        many("validatingAdmissionPolicies", "", ADMISSION_REFERENCE),
        many("mutatingAdmissionWebhooks", "", ADMISSION_REFERENCE),
        many("validatingAdmissionWebhooks", "", ADMISSION_REFERENCE),
    )
)
PLUGIN = struct(
    *TYPE_META, value("metadata", OBJECT_META), value("spec", PLUGIN_SPEC), value("status", struct())
)
