"""Which exception an answer becomes."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.kube import errors
from kvnode.kube.errors import ApiError, error_of_answer, error_of_status


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Expired),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", ApiError),
    ],
)
def test_by_status_and_reason(code: int, reason: str, kind: type[ApiError]) -> None:
    body = {"kind": "Status", "code": code, "reason": reason, "message": "so it is", "details": {"name": "x"}}
    error = error_of_answer(code, orjson.dumps(body))
    assert type(error) is kind
    assert (error.status, error.reason, error.details) == (code, reason, {"name": "x"})
    assert str(error) == f"{code} {reason}: so it is"


def test_a_watch_may_say_410_by_reason_alone() -> None:
    assert isinstance(error_of_status({"kind": "Status", "reason": "Gone"}), errors.Expired)
    assert isinstance(error_of_status({"code": 410}), errors.Expired)


def test_the_time_to_wait_is_the_header_s_or_the_body_s() -> None:
    body = orjson.dumps({"kind": "Status", "details": {"retryAfterSeconds": 7}})
    assert error_of_answer(429, body).retry_after == 7
    assert error_of_answer(429, body, 3).retry_after == 3
    assert error_of_answer(429, b"").retry_after is None


@given(st.integers(300, 599), st.binary(max_size=300))
def test_any_answer_becomes_one_line(code: int, body: bytes) -> None:
    error = error_of_answer(code, body)
    assert error.status == code
    assert error.message


@given(
    st.dictionaries(
        st.sampled_from(["code", "reason", "message", "details", "kind"]),
        st.one_of(st.none(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2)),
    )
)
def test_any_status_becomes_an_error(status: dict[str, object]) -> None:
    assert str(error_of_status(status))
