"""What a call to the API server can end in."""

# ruff: noqa: N818 — named as the API server names its reasons

from __future__ import annotations

from typing import Any

import orjson


class KubeError(Exception):
    """Any failure of this package."""


class ConfigurationError(KubeError):
    """There is no usable address or credential of an API server; the message names the file and the field."""


class ConnectionFailed(KubeError):
    """No whole answer came; whether the request had an effect is unknown."""


class DeadlineExceeded(ConnectionFailed):
    """The answer did not come in time."""


class ApiError(KubeError):
    """The API server refused.

    `status` is the HTTP status, `reason` the machine-readable word of the Status object ("NotFound", "" when there
    was none), `message` the server's text, `details` its details, `retry_after` the seconds that it asks to wait.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.status} {self.reason or 'error'}: {self.message}"


class Unauthorized(ApiError):
    """401: the credential is not, or no longer, good."""


class Forbidden(ApiError):
    """403: no right to do this, or admission forbade it."""


class NotFound(ApiError):
    """404: there is no such object."""


class Conflict(ApiError):
    """409: the object was changed since it was read."""


class AlreadyExists(ApiError):
    """409: an object of that name is there."""


class Expired(ApiError):
    """410: the resource version or continue token is too old; list again."""


class Invalid(ApiError):
    """422: the object is not valid, or a JSON patch's test failed."""


class TooManyRequests(ApiError):
    """429: the server is busy and stayed so for as long as we were patient."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}


def error_of_status(status: dict[str, Any], code: int = 0, retry_after: float | None = None) -> ApiError:
    """The exception for a ``Status`` object, as in an answer's body or a watch's ERROR event."""
    number = status.get("code")
    code = code or (number if isinstance(number, int) else 500)
    reason = str(status.get("reason") or "")
    kind = AlreadyExists if reason == "AlreadyExists" else _BY_STATUS.get(code, ApiError)
    if reason in ("Expired", "Gone"):  # a watch may say so with another code
        kind = Expired
    details = status.get("details")
    details = details if isinstance(details, dict) else {}
    if retry_after is None and isinstance(details.get("retryAfterSeconds"), int):
        retry_after = float(details["retryAfterSeconds"]) or None
    return kind(code, reason, str(status.get("message") or "no message"), details, retry_after)


def error_of_answer(code: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """The exception for an answer of status ``code``, whatever its body."""
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = body[:200].decode(errors="replace").strip()
        status = {"message": text or "no message"}
    return error_of_status(status, code, retry_after)
