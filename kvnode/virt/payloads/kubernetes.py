"""Kubernetes' own types: Status (meta/v1) and Event (core/v1)."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import INT32, INT64, MICRO_TIME, TIME
from kvnode.virt.domain_json.schema.objectmeta import OBJECT_META
from kvnode.virt.domain_json.shape import empties, many, optional, struct, text, unless_empty, value

TYPE_META = empties(text("kind"), text("apiVersion"))
LIST_META = struct(
    *empties(
        text("selfLink"), text("resourceVersion"), text("continue"), optional("remainingItemCount", "", INT64)
    )
)

STATUS_CAUSE = struct(*empties(text("reason"), text("message"), text("field")))
STATUS_DETAILS = struct(
    *empties(
        text("name"),
        text("group"),
        text("kind"),
        text("uid"),
        many("causes", "", STATUS_CAUSE),
        value("retryAfterSeconds", INT32),
    )
)
STATUS = struct(
    *TYPE_META,
    value("metadata", LIST_META),
    *empties(
        text("status"),
        text("message"),
        text("reason"),
        optional("details", "", STATUS_DETAILS),
        value("code", INT32),
    ),
)

OBJECT_REFERENCE = struct(
    *empties(
        text("kind"),
        text("namespace"),
        text("name"),
        text("uid"),
        text("apiVersion"),
        text("resourceVersion"),
        text("fieldPath"),
    )
)
EVENT_SOURCE = struct(*empties(text("component"), text("host")))
EVENT_SERIES = struct(unless_empty(value("count", INT32)), value("lastObservedTime", MICRO_TIME))
EVENT = struct(
    *TYPE_META,
    value("metadata", OBJECT_META),
    value("involvedObject", OBJECT_REFERENCE),
    *empties(text("reason"), text("message")),
    value("source", EVENT_SOURCE),
    value("firstTimestamp", TIME),
    value("lastTimestamp", TIME),
    *empties(value("count", INT32), text("type")),
    value("eventTime", MICRO_TIME),
    *empties(optional("series", "", EVENT_SERIES), text("action"), optional("related", "", OBJECT_REFERENCE)),
    text("reportingComponent"),
    text("reportingInstance"),
)
