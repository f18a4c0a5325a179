"""Encrypted guests (``staging/src/kubevirt.io/api/core/v1/types.go:4020``)."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import UINT64
from kvnode.virt.domain_json.shape import empties, struct, text, value
from kvnode.virt.payloads.kubernetes import TYPE_META

PLATFORM_INFO = struct(*TYPE_META, *empties(text("pdh"), text("certChain")))
MEASUREMENT_INFO = struct(
    *TYPE_META,
    *empties(
        text("measurement"),
        value("apiMajor", UINT64),
        value("apiMinor", UINT64),
        value("buildID", UINT64),
        value("policy", UINT64),
        text("loaderSHA"),
    ),
)
SECRET_OPTIONS = struct(*empties(text("header"), text("secret")))
