"""Differences that are meant: where the reference is wrong or wasteful, and the project does not follow it.

A rule has a reason, and a predicate on the case and both outputs that recognises exactly that difference;
it never lists cases. A predicate that raises does not recognise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.reference import better_controllers as controllers
from tests.reference.common import Case


@dataclass(frozen=True)
class Rule:
    """One difference that is meant."""

    group: str
    reason: str
    recognises: Callable[[Case, Any, Any], bool]
    """``recognises(case, want, got)``: the outputs differ in just this way."""


def _refused_in_other_words(case: Case, want: Any, got: Any) -> bool:
    """The same refusal by the command server itself: only the sentence is another."""
    own = not case.data["manager_fails"]  # else the sentence is the manager's, and must come through
    return own and want != got and _wordless(want) == _wordless(got)


def _wordless(answer: Any) -> Any:
    """An answer with a mark in place of a refusal's sentence. A refusal without one has no mark."""
    if not isinstance(answer, dict):
        return answer
    marked = {name: _wordless(item) for name, item in answer.items()}
    if answer.get("message") and not answer.get("success"):
        marked["message"] = "…"
    return marked


def _refused_instead_of_dying(_case: Case, want: Any, got: Any) -> bool:
    """No answer at all but a dead launcher; here the request is refused, and nothing is done."""
    answer = got["response"]
    verdict = answer.get("response", answer)
    refused = bool(verdict.get("message")) and not verdict.get("success") and not got["rpc_error"]
    return want.get("panic") is True and refused and got["manager_calls"] == want["manager_calls"]


#: Features that KVM tells of by an extension, not by an MSR alone.
_BY_EXTENSION = ("base", "time", "vpindex", "tlbflush", "ipi", "synic", "synic2")


def _failed_check_is_no(case: Case, want: Any, got: Any) -> bool:
    """The features that KVM could not be asked after, and no other, are missing."""
    known = [name for name in want["hyperv_capabilities"] if name not in _BY_EXTENSION]
    return case.data["case"] == "hyperv-msrs" and got == {**want, "hyperv_capabilities": known}


def _read_instead_of_stored(case: Case, want: Any, got: Any) -> bool:
    """The API server is asked first, once, and all that follows is the same."""
    return case.data["vmi"] is None and got == {**want, "calls": ["api.ReadVMI", *want["calls"]]}


RULES: tuple[Rule, ...] = (
    Rule("launcher_server", "a refusal says it in this project's own words", _refused_in_other_words),
    Rule(
        "launcher_server",
        "a request that the reference's launcher dies of (one without a VMI) is refused, and nothing is done",
        _refused_instead_of_dying,
    ),
    Rule(
        "labels",
        "an extension that KVM cannot be asked after is not there, where the reference reads the error as a yes",
        _failed_check_is_no,
    ),
    Rule(
        "agent_sync",
        "a VMI that is not among the node's is read from the API server: no agent stores those of all nodes",
        _read_instead_of_stored,
    ),
    *(
        Rule(group, reason, recognises)
        for group in ("vm", "vm_status", "start")
        for reason, recognises in (
            ("a revision that the cache has is not read from the server", controllers.cached_revision),
            (
                "a VMI is made with the annotations that its controller writes first, and its VM tells of it at once",
                controllers.started_at_once,
            ),
            (
                "annotations, finalizer and firmware UUID of a new VM are one write: nobody acts between them",
                controllers.taken_up_at_once,
            ),
            (
                "a failure's start request is written before its VMI is deleted, lest who dies in between forgets it",
                controllers.start_asked_first,
            ),
            (
                "a failure's start request is not lost when writing it alone would be refused",
                controllers.start_request_kept,
            ),
            (
                "a failed VMI is not deleted before its VM's start request could be written",
                controllers.not_deleted_unasked,
            ),
            (
                "a failure's start request is there even when its VMI could not be deleted yet",
                controllers.asked_although_not_deleted,
            ),
            (
                "starting a halted VM is no failure; the reference calls it one, fails to write that, and tries again",
                controllers.start_of_halted,
            ),
            (
                "a VM that went with its last finalizer has no status to be written, and nothing to be tried again",
                controllers.status_of_gone,
            ),
            (
                "a firmware UUID that a patch has just written is not written again",
                controllers.uuid_written_once,
            ),
        )
    ),
    Rule(
        "vmi",
        "an event tells of a temporary pod's deletion only when it was deleted",
        controllers.deletion_not_told,
    ),
    Rule(
        "vmi",
        "a pod that was just made is told of with the phase that it brings, not in a write of its own",
        controllers.pod_told_at_once,
    ),
    Rule(
        "vmi",
        "a pod's readiness gate is told when its containers run: until then it is not Ready whatever the gate says",
        controllers.gate_told_later,
    ),
    Rule(
        "vmi",
        "a pod's readiness gate goes with its labels in one call: who looks for a pod by them finds it no later",
        controllers.gate_told_with_labels,
    ),
    Rule(
        "vmi",
        "a pod's node is told with the hand-over that follows within two seconds: a watch may be as late",
        controllers.node_told_with_start,
    ),
    Rule(
        "vmi",
        "a pod that was asked for is waited for although its VMI is said to be gone: a watch may be wrong",
        controllers.still_awaited,
    ),
)


def reason_for(case: Case, want: Any, got: Any, rules: tuple[Rule, ...] | None = None) -> str:
    """The reason of the first rule that recognises the difference; "" when none does."""
    for rule in RULES if rules is None else rules:
        if rule.group != case.group:
            continue
        try:
            if rule.recognises(case, want, got):
                return rule.reason
        except (LookupError, TypeError, ValueError, AttributeError):
            continue
    return ""
