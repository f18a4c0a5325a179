"""The controllers' differences that are meant: predicates for `tests.reference.better`."""

from __future__ import annotations

import copy
from typing import Any

from tests.reference.common import Case

RANDOM = "<random>"


def cached_revision(_case: Case, want: Any, got: Any) -> bool:
    """All the same, but for a revision that was read from the server and is in the cache."""
    asked = [
        one for one in want["actions"] if one["verb"] == "get" and one["resource"] == "controllerrevisions"
    ]
    kept = [one for one in want["actions"] if one not in asked]
    return bool(asked) and {**want, "actions": kept} == {"actions": [], **got}


def started_at_once(case: Case, want: Any, got: Any) -> bool:
    """A start took two passes to be told, and the VMI another write for two annotations."""
    starts = any(one.startswith("create virtualmachineinstances") for one in _words(got))
    if not starts or _words(want) != _words(got):
        return False
    ours, theirs = _as_born(got), copy.deepcopy(want)
    if ours == theirs:
        return True
    for output in (ours, theirs):
        _forget_status(output)
    return bool(ours == theirs) and _end(case)


def pod_told_at_once(_case: Case, want: Any, got: Any) -> bool:
    """The pod that was just made is among the VMI's pods only in the next pass."""
    made = [one for one in got.get("actions", ()) if one["verb"] == "create" and one["resource"] == "pods"]
    pods = got["vmiAfter"].get("activePods")
    refused = [one for one in got.get("actions", ()) if one["verb"] == "update" and "error" in one]
    ours = copy.deepcopy(got)
    for one in ours.get("actions", ()):
        if one in refused and one["payload"]["status"].get("activePods") == {RANDOM: ""}:
            del one["payload"]["status"]["activePods"]
            pods = pods or {RANDOM: ""}
    ours["vmiAfter"].pop("activePods", None) if pods == {RANDOM: ""} else None
    return len(made) == 1 and pods == {RANDOM: ""} and ours == want


def gate_told_later(case: Case, want: Any, got: Any) -> bool:
    """The readiness gate of a pod whose containers do not run yet was told in a call of its own."""
    gates = [one for one in want["actions"] if _is_gate(one)]
    if len(gates) != 1 or "error" in gates[0] or any(_is_pod_status(one) for one in got.get("actions", ())):
        return False
    made = [one for one in want["actions"] if one["verb"] == "create" and one["resource"] == "pods"]
    kept = _with_actions(want, [one for one in want["actions"] if one is not gates[0]])
    # A pod that is there already is the case's to show; none is made that runs.
    waits = len(made) == 1 or not _has_started(case)
    return waits and (got == kept or pod_told_at_once(case, kept, got))


def gate_told_with_labels(_case: Case, want: Any, got: Any) -> bool:
    """A pod's readiness gate, and its labels and annotations, were told in calls of their own."""
    ours = copy.deepcopy(got)
    gates = [one for one in ours["actions"] if _is_gate(one) and "metadata" in one["payload"]]
    if len(gates) != 1 or "error" in gates[0]:
        return False
    told = gates[0]["payload"].pop("metadata")
    others = [one for one in want["actions"] if one["verb"] == "patch" and _is_pod(one)]
    written: dict[str, Any] = {}
    for operation in (one for call in others for one in call["payload"] if one["op"] != "test"):
        written[operation["path"].rpartition("/")[2]] = operation["value"]
    node = {"kubevirt.io/nodeName": at_node} if (at_node := got["vmiAfter"].get("nodeName")) else {}
    for field, changes in told.items():
        wanted = {**written.get(field, {}), **(node if field == "labels" else {})}
        if not changes or any(wanted.get(name) != value for name, value in changes.items()):
            return False
    if set(written) - set(told):
        return False
    return bool({**want, "actions": [one for one in want["actions"] if one not in others]} == ours)


def node_told_with_start(case: Case, want: Any, got: Any) -> bool:
    """A VMI told of its pod's node in a write of its own; here with the pod's start, or two seconds later."""
    writes = [one for one in want["actions"] if one["verb"] == "update"]
    if len(writes) != 1 or "error" in writes[0] or got.get("vmiWritten"):
        return False
    before, after = case.data["input"]["vmi"]["status"], want["vmiAfter"]
    same_pods = set(before.get("activePods") or {}) == set(after.get("activePods") or {})
    ours, theirs = copy.deepcopy(got), copy.deepcopy(want)
    theirs = _with_actions(theirs, [one for one in theirs["actions"] if one != writes[0]])
    theirs.pop("vmiWritten")
    for output in (ours, theirs):
        output["vmiAfter"].pop("activePods", None)
        output["vmiAfter"].pop("statusChanged", None)
        for name in ("queue", "expectationsAfter"):
            output.pop(name, None)
    # The API's times have whole seconds.
    waits = any(
        one["op"] == "addAfter" and (one.get("delaySeconds") or 0) <= 3 for one in got["queue"]["ops"]
    )
    return before.get("phase") == "Scheduling" and same_pods and waits and ours == theirs


def still_awaited(case: Case, want: Any, got: Any) -> bool:
    """A VMI that a watch says is gone may be there: the pod or claim just asked for it is still waited for."""
    given = case.data["input"]
    pending = given.get("pendingExpectations") or {}
    kept = {name: pending.get(name, 0) for name in ("podCreations", "pvcCreations")}
    expected = {**want, "expectationsAfter": {**want["expectationsAfter"], **kept}}
    return given.get("vmi") is None and got == expected


def taken_up_at_once(case: Case, want: Any, got: Any) -> bool:
    """A VM's annotations were written in a pass of their own, finalizer and UUID in others."""
    writes = [one for one in want["actions"] if one["verb"] == "update" and not one.get("subresource")]
    if len(want["actions"]) != 1 or len(writes) != 1 or _errors(want) or _errors(got):
        return False
    before = case.data["input"]["vm"]["metadata"].get("annotations") or {}
    after = writes[0]["payload"]["metadata"].get("annotations") or {}
    first = got["actions"][0]
    ours = (first["payload"]["metadata"].get("annotations") or {}) if first["verb"] == "update" else {}
    return {*after} >= _API and after == ours != before and _end(case)


def start_asked_first(case: Case, want: Any, got: Any) -> bool:
    """A failed VMI's start request was written after its deletion, and the status refused because of that."""
    rest = _asked_before(case, got)
    patch, refused = _status_patch(want), _refused_status(want, "Conflict")
    if rest is None or patch is None or refused is None or case.data["input"].get("injectedErrors"):
        return False
    told = [one for one in rest if one["verb"] != "delete"]
    same = [_without_requests(one["payload"]) for one in told if _is_status_update(one)]
    return not _errors(got) and same == [_without_requests(refused["payload"])] and _end(case)


def start_request_kept(case: Case, want: Any, got: Any) -> bool:
    """Writing a failed VMI's start request was refused, and the VM is not started again; here it is."""
    rest = _asked_before(case, got)
    refused = [one for one in want["actions"] if "error" in one]
    if rest is None or len(refused) != 1 or refused[0] != _status_patch(want) or _errors(got):
        return False
    wanted = [one["payload"]["status"] for one in want["actions"] if _is_status_update(one)]
    written = [one["payload"]["status"] for one in rest if _is_status_update(one)]
    if len(wanted) != 1 or len(written) != 1:
        return False
    requests = refused[0]["payload"][0]["value"]
    conditions = [one for one in wanted[0]["conditions"] if one["type"] != "Failure"]
    told = {**wanted[0], "conditions": conditions, "stateChangeRequests": requests}
    return told == written[0] and _results(want, got) == ("rateLimited", "forgotten")


def not_deleted_unasked(case: Case, want: Any, got: Any) -> bool:
    """A failed VMI was deleted while its VM's status could not be written; here it is there yet."""
    rest = _asked_before(case, got)
    refused = [one for one in want["actions"] if _is_status_update(one) and "error" in one]
    same = len(refused) == 1 and _errors(got) == [refused[0]["error"]]
    return rest == [] and same and _results(want, got) == ("rateLimited", "rateLimited")


def asked_although_not_deleted(case: Case, want: Any, got: Any) -> bool:
    """A failed VMI could not be deleted; the start request is there already, and all else the same."""
    rest = _asked_before(case, got)
    if rest is None or _status_patch(want) is not None:
        return False
    return bool(_errors(want)) and _without_requests(want) == _without_requests({**got, "actions": rest})


def _asked_before(case: Case, got: Any) -> list[Any] | None:
    """What was done after a failed VMI's start request was written, if it was or was there; None otherwise."""
    from tests.reference.controllers import bare, plain  # noqa: PLC0415 - as in `_end`

    vm, vmi = case.data["input"]["vm"], case.data["input"]["vmi"]
    if vm["spec"].get("runStrategy") != "RerunOnFailure" or vmi["status"]["phase"] != "Failed":
        return None
    status, actions = bare(plain(vm.get("status") or {})), list(got["actions"])
    requests = status.get("stateChangeRequests") or []
    if any(one["action"] == "Start" for one in requests):
        return actions
    asked = {**status, "stateChangeRequests": [*requests, {"action": "Start"}]}
    is_asked = _is_status_update(actions[0]) and actions[0]["payload"] == {"status": asked}
    return actions[1:] if is_asked else None


def _without_requests(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_requests(item) for key, item in value.items() if key != "stateChangeRequests"}
    return [_without_requests(item) for item in value] if isinstance(value, list) else value


def start_of_halted(case: Case, want: Any, got: Any) -> bool:
    """The halted VM was made to run, and that was called a failure, which could not be written."""
    refused = _refused_status(want, "Conflict")
    if refused is None or case.data["input"].get("injectedErrors") or _errors(got):
        return False
    failure = [
        one["reason"] for one in refused["payload"]["status"]["conditions"] if one["type"] == "Failure"
    ]
    starts = [one for one in want["actions"] if one["verb"] == "update" and not one.get("subresource")]
    return failure == ["FailedCreate"] and starts == got["actions"][: len(starts)] != [] and _end(case)


def status_of_gone(_case: Case, want: Any, got: Any) -> bool:
    """The status of a VM was written that went with its last finalizer."""
    refused = _refused_status(want, "NotFound")
    if refused is None or want.get("vmAfter") is not None:
        return False
    kept = [one for one in want["actions"] if one is not refused]
    different = ("actions", "queue", "printableStatus")
    same = all(want.get(name) == got.get(name) for name in {*want, *got} - {*different})
    return same and got.get("actions") == kept and _results(want, got) == ("rateLimited", "forgotten")


def uuid_written_once(_case: Case, want: Any, got: Any) -> bool:
    """The VM was written again with the firmware UUID that a patch had just given it."""
    patches = [one for one in want["actions"] if _gives_uuid(one)]
    writes = [one for one in want["actions"] if one["verb"] == "update" and not one.get("subresource")]
    if len(patches) != 1 or len(writes) != 1:
        return False
    firmware = writes[0]["payload"]["spec"]["template"]["spec"]["domain"]["firmware"]
    kept = [one for one in want["actions"] if one is not writes[0]]
    given = patches[0]["payload"][-1]["value"]
    return bool(firmware == given and {**want, "actions": kept} == got)


def deletion_not_told(_case: Case, want: Any, got: Any) -> bool:
    """A temporary pod was left alone, and its deletion announced."""
    deleted = [one for one in want.get("actions", ()) if one["verb"] == "delete"]
    told = [one for one in want["events"] if one["reason"] == "SuccessfulDelete"]
    kept = [one for one in want["events"] if one not in told]
    return bool(told) and not deleted and {**want, "events": kept} == {"events": [], **got}


_API = {"kubevirt.io/latest-observed-api-version", "kubevirt.io/storage-observed-api-version"}


def _as_born(got: Any) -> Any:
    """Our output, without the annotations that the reference writes a little later."""
    made = copy.deepcopy(got)
    born = [
        one["payload"]["metadata"]
        for one in made.get("actions", ())
        if one["verb"] == "create" and one["resource"] == "virtualmachineinstances"
    ]
    if born and "vmiAfter" in made:
        born.append(made["vmiAfter"])
    if "createdVMI" in made:
        born.append(made["createdVMI"]["metadata"])
    for meta in born:
        for name in _API:
            meta["annotations"].pop(name, None)
    return made


def _words(output: Any) -> list[str]:
    return [
        " ".join(filter(None, (one["verb"], one["resource"], one.get("subresource"), one.get("error"))))
        for one in output.get("actions", ())
    ]


def _forget_status(output: Any) -> None:
    """Leave out what the VM's status says."""
    for one in output["actions"]:
        if _is_status_update(one):
            one.pop("payload")
    for name in ("vmStatusWritten", "printableStatus"):
        output.pop(name, None)
    output.get("vmAfter", {}).pop("status", None)


def _gives_uuid(action: dict[str, Any]) -> bool:
    if action["verb"] != "patch" or action["resource"] != "virtualmachines":
        return False
    return [one["path"] for one in action["payload"]] == ["/spec/template/spec/domain/firmware"] * 2


def _with_actions(output: Any, actions: list[dict[str, Any]]) -> Any:
    """The output with other actions; a case leaves out what is empty."""
    made = {**output, "actions": actions}
    if not actions:
        del made["actions"]
    return made


def _is_pod(action: dict[str, Any]) -> bool:
    return action["resource"] == "pods" and not action.get("subresource")


def _is_pod_status(action: dict[str, Any]) -> bool:
    return action["resource"] == "pods" and action.get("subresource") == "status"


def _is_gate(action: dict[str, Any]) -> bool:
    """A patch that tells of the readiness gate, and of no other condition."""
    if action["verb"] != "patch" or not _is_pod_status(action):
        return False
    told = action["payload"]["status"]["conditions"]
    return [one["type"] for one in told] == ["kubevirt.io/virtual-machine-unpaused"]


def _has_started(case: Case) -> bool:
    """Whether the VMI of a case is handed over, or its pod runs."""
    given = case.data["input"]
    phase = (given["vmi"].get("status") or {}).get("phase") or ""
    if phase not in ("", "Pending", "Scheduling"):
        return True
    states = [(pod.get("status") or {}) for pod in given.get("pods") or ()]
    return any(
        state.get("phase") == "Running"
        and all(one.get("ready") for one in state.get("containerStatuses") or ())
        for state in states
    )


def _is_status_update(action: dict[str, Any]) -> bool:
    return action["verb"] == "update" and action.get("subresource") == "status"


def _refused_status(want: Any, error: str) -> dict[str, Any] | None:
    """The one refused call, if it is a status of the VM's and refused for that reason."""
    refused: list[dict[str, Any]] = [one for one in want["actions"] if "error" in one]
    if len(refused) != 1 or not _is_status_update(refused[0]) or refused[0]["error"] != error:
        return None
    return refused[0]


def _status_patch(want: Any) -> dict[str, Any] | None:
    found = [one for one in want["actions"] if one["verb"] == "patch" and one.get("subresource") == "status"]
    paths = [operation["path"] for one in found for operation in one["payload"]]
    return found[0] if paths == ["/status/stateChangeRequests"] else None


def _errors(got: Any) -> list[str]:
    return [one["error"] for one in got.get("actions", ()) if "error" in one]


def _results(want: Any, got: Any) -> tuple[str, str]:
    return want["queue"]["result"], got["queue"]["result"]


def _end(case: Case) -> bool:
    # The scenes know the controllers, which the other groups have no need to load.
    from tests.reference.rest import ends_the_same  # noqa: PLC0415

    return ends_the_same(case.data)
