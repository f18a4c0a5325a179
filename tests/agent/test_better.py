"""Differences from the reference that are meant are no wider than they say."""

from __future__ import annotations

import pytest

from tests.reference.better import reason_for
from tests.reference.common import Case


def sync(vmi, got_calls, **more):
    case = Case("agent_sync", 1, {"vmi": vmi})
    want = {"calls": ["a", "b"], "returns_error": False}
    return reason_for(case, want, {**want, "calls": got_calls, **more})


def test_a_read_before_all_else_where_the_vmi_is_not_stored():
    assert sync(None, ["api.ReadVMI", "a", "b"])


@pytest.mark.parametrize(
    "calls", [["a", "api.ReadVMI", "b"], ["api.ReadVMI", "a"], ["api.ReadVMI", "api.ReadVMI", "a", "b"]]
)
def test_and_nothing_else(calls):
    assert sync(None, calls) == ""


def test_nor_where_it_is_stored_nor_with_another_end():
    assert sync({}, ["api.ReadVMI", "a", "b"]) == ""
    assert sync(None, ["api.ReadVMI", "a", "b"], returns_error=True) == ""


def hyperv(want, got, case="hyperv-msrs"):
    return reason_for(
        Case("labels", 1, {"case": case}), {"hyperv_capabilities": want}, {"hyperv_capabilities": got}
    )


def test_extensions_that_cannot_be_asked_after():
    assert hyperv(["base", "time", "reset"], ["reset"])
    assert hyperv(["base", "time", "reset"], []) == ""
    assert hyperv(["base", "time", "reset"], ["time", "reset"]) == ""
    assert hyperv(["base", "time", "reset"], ["reset"], case="hyperv") == ""
