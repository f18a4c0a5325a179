"""Kubernetes' ObjectMeta."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import BOOL, INT64, RAW, TEXT, TEXTS, TIME
from kvnode.virt.domain_json.shape import many, one, optional, struct, text, unless_empty

OWNER_REFERENCE = struct(
    text("apiVersion"),
    text("kind"),
    text("name"),
    text("uid"),
    unless_empty(optional("controller", "", BOOL)),
    unless_empty(optional("blockOwnerDeletion", "", BOOL)),
)
MANAGED_FIELDS = struct(
    *(unless_empty(text(name)) for name in ("manager", "operation", "apiVersion")),
    unless_empty(optional("time", "", TIME)),
    unless_empty(text("fieldsType")),
    unless_empty(optional("fieldsV1", "", RAW)),
    unless_empty(text("subresource")),
)
OBJECT_META = struct(
    *(
        unless_empty(text(n))
        for n in ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion")
    ),
    unless_empty(one("generation", "", INT64)),
    unless_empty(one("creationTimestamp", "", TIME)),
    unless_empty(optional("deletionTimestamp", "", TIME)),
    unless_empty(optional("deletionGracePeriodSeconds", "", INT64)),
    unless_empty(one("labels", "", TEXTS)),
    unless_empty(one("annotations", "", TEXTS)),
    unless_empty(many("ownerReferences", "", OWNER_REFERENCE)),
    unless_empty(many("finalizers", "", TEXT)),
    unless_empty(many("managedFields", "", MANAGED_FIELDS)),
)
