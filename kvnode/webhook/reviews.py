"""AdmissionReviews: the API server's question, read, and the answer (``admission.k8s.io/v1``)."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from kvnode.spec.cause import Cause

API_VERSION = "admission.k8s.io/v1"
GROUP = "kubevirt.io"
_MOST_CAUSES = 20
"""Causes that an answer names: more help nobody, and hostile input may have thousands."""


class ReviewError(ValueError):
    """What was sent is no AdmissionReview that is for these webhooks."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question: may this object be stored?"""

    uid: str
    operation: str
    """CREATE or UPDATE; others are never asked."""
    kind: str
    resource: str
    """Plural of the kind."""
    subresource: str
    name: str
    """"" when the API server is yet to make one."""
    namespace: str
    username: str
    node: str
    """The node whose pod asks, by its token; "" where the token names none."""
    new: Mapping[str, Any]
    old: Mapping[str, Any]

    @property
    def creating(self) -> bool:
        """Whether the object is new."""
        return self.operation == "CREATE"


@dataclass(slots=True)
class Answer:
    """What becomes of it: refused with causes, or let through with a patch."""

    causes: list[Cause] = field(default_factory=list)
    patch: list[dict[str, Any]] = field(default_factory=list)
    """JSON patch operations (RFC 6902)."""
    warnings: list[str] = field(default_factory=list)
    code: int = 422
    """HTTP status of a refusal."""


_NODE = "authentication.kubernetes.io/node-name"


def read_request(body: bytes) -> Request:
    """Read an AdmissionReview.

    Raises:
        ReviewError: it is none, or not of v1; the message says what is wrong.
    """
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ReviewError(f"is no JSON: {error}") from None
    if not isinstance(review, dict) or review.get("apiVersion") != API_VERSION:
        raise ReviewError(f"is no AdmissionReview of {API_VERSION}")
    request = _mapping(review, "request")
    resource = _mapping(request, "resource")
    if resource.get("group") != GROUP:
        raise ReviewError(f"request.resource.group: must be {GROUP}")
    operation = _text(request, "operation")
    if operation not in ("CREATE", "UPDATE"):
        raise ReviewError("request.operation: must be CREATE or UPDATE")
    for name in ("object", "oldObject") if operation == "UPDATE" else ("object",):
        if request.get(name) is None:
            raise ReviewError(f"request.{name}: must be there on {operation}")
    user = _mapping(request, "userInfo")
    nodes = _mapping(user, "extra").get(_NODE)
    return Request(
        uid=_text(request, "uid"),
        operation=operation,
        kind=_text(_mapping(request, "kind"), "kind"),
        resource=_text(resource, "resource"),
        subresource=_text(request, "subResource"),
        name=_text(request, "name"),
        namespace=_text(request, "namespace"),
        username=_text(user, "username"),
        node=str(nodes[0]) if isinstance(nodes, list) and nodes else "",
        new=_mapping(request, "object"),
        old=_mapping(request, "oldObject"),
    )


def _mapping(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = parent.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ReviewError(f"{name}: must be an object")
    return value


def _text(parent: Mapping[str, Any], name: str) -> str:
    value = parent.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ReviewError(f"{name}: must be a string")
    return value


def write_answer(request: Request, answer: Answer) -> bytes:
    """The AdmissionReview that answers a question.

    Raises:
        TypeError: the patch is nested too deeply to be written.
    """
    response: dict[str, Any] = {"uid": request.uid, "allowed": not answer.causes}
    if answer.causes:
        response["status"] = _status(request, answer.causes, answer.code)
    elif answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(answer.patch)).decode()
    if answer.warnings:
        response["warnings"] = answer.warnings
    return orjson.dumps({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def _status(request: Request, causes: Sequence[Cause], code: int) -> dict[str, Any]:
    """A Status of the API server's own form, so that clients show the fields at fault."""
    told = causes[:_MOST_CAUSES]
    message = "; ".join(str(cause) for cause in told)
    if len(causes) > len(told):
        message += f"; and {len(causes) - len(told)} more"
    details: dict[str, Any] = {
        # Clients write a field before each cause: one of the whole object is in the message alone.
        "causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in told if c.field]
    }
    if request.name and request.kind:
        details |= {"group": GROUP, "kind": request.kind, "name": request.name}
    return {
        "status": "Failure",
        "message": message,
        "reason": {422: "Invalid", 403: "Forbidden"}.get(code, "InternalError"),
        "code": code,
        "details": details,
    }
