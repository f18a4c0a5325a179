"""Admission of VirtualMachineInstances.

(``vmi-mutator.go``, ``vmi-create-admitter.go`` and ``vmi-update-admitter.go`` of ``pkg/virt-api/webhooks``)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from kvnode.api import names
from kvnode.api.errors import FieldError
from kvnode.spec.cause import INVALID, NOT_SUPPORTED, Cause, shown
from kvnode.spec.defaults import apply_defaults
from kvnode.spec.fields import get_mapping
from kvnode.spec.validation import validate
from kvnode.spec.validation.instance import RESERVED_LABELS
from kvnode.spec.validation.update import hotplug_causes, reserved_label_causes, same_spec
from kvnode.webhook.reviews import Answer, Request
from kvnode.webhook.settings import Settings

_EVEN_PARITY = names.EMULATOR_THREAD_COMPLETE_TO_EVEN_PARITY_ANNOTATION

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


def mutate_instance(request: Request, settings: Settings, clock: Clock = _now) -> Answer:
    """A new VMI gets its defaults, its finalizer and its first phase; of an old one nobody but KubeVirt's own
    accounts changes the status.
    """
    trusted = request.username in settings.accounts
    if request.creating:
        return _created(request.new, settings, trusted, clock)
    if trusted or _status(request.new) == _status(request.old):
        return Answer()
    if "status" in request.old:
        return Answer(patch=[{"op": "add", "path": "/status", "value": request.old["status"]}])
    return Answer(patch=[{"op": "remove", "path": "/status"}])


def _created(new: Mapping[str, Any], settings: Settings, trusted: bool, clock: Clock) -> Answer:
    # A status that the author wrote would pass for what a controller found out.
    vmi = dict(new) if trusted else {name: value for name, value in new.items() if name != "status"}
    try:
        made = apply_defaults(vmi, settings.architecture, settings.cluster)
    except FieldError as error:
        # The rules name all fields of a wrong type, defaulting the first that it meets.
        found = validate(vmi, settings.architecture, settings.configuration)
        return Answer(causes=found or [Cause(error.field, INVALID, error.message)])
    metadata, status = made["metadata"], made["status"]
    annotations = dict(metadata.get("annotations") or {})
    if _parity_wanted(made, settings):
        annotations[_EVEN_PARITY] = ""
    finalizers = list(metadata.get("finalizers") or [])
    if names.FINALIZER not in finalizers:
        finalizers.append(names.FINALIZER)
    status["phase"] = "Pending"
    moment = clock().strftime("%Y-%m-%dT%H:%M:%SZ")
    status["phaseTransitionTimestamps"] = [
        *status.get("phaseTransitionTimestamps", []),
        {"phase": "Pending", "phaseTransitionTimestamp": moment},
    ]
    patch = [
        {"op": "add", "path": "/spec", "value": made["spec"]},
        {"op": "add", "path": "/status", "value": status},
        {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
    ]
    if annotations:
        patch.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
    return Answer(patch=patch)


def _parity_wanted(vmi: Mapping[str, Any], settings: Settings) -> bool:
    """Whether the cluster wants an emulator's own CPU to come with a sibling (``vmi-mutator.go:64-73``)."""
    isolated = vmi["spec"]["domain"]["cpu"].get("isolateEmulatorThread")
    return bool(isolated) and _EVEN_PARITY in settings.annotations and settings.cluster.gate("AlignCPUs")


def _status(vmi: Mapping[str, Any]) -> Mapping[str, Any]:
    return get_mapping(vmi, "status", "")


def validate_instance(request: Request, settings: Settings) -> Answer:
    """The library's rules for a new VMI; for an old one those on changes."""
    trusted = request.username in settings.accounts
    if request.creating:
        vmi = _without_reserved_labels(request.new) if trusted else request.new
        return Answer(causes=validate(vmi, settings.architecture, settings.configuration))
    causes = _foreign_node(request, settings)
    if not causes:
        causes = _changed_spec(request, settings, trusted)
    if not causes and not trusted:
        causes = reserved_label_causes(request.new, request.old)
    return Answer(causes=causes)


def _without_reserved_labels(vmi: Mapping[str, Any]) -> dict[str, Any]:
    """The VMI without the labels that whoever asks may set."""
    made, metadata = dict(vmi), vmi.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    if isinstance(labels, Mapping):
        kept = {name: value for name, value in labels.items() if name not in RESERVED_LABELS}
        made["metadata"] = {**(metadata or {}), "labels": kept}
    return made


def _changed_spec(request: Request, settings: Settings, trusted: bool) -> list[Cause]:
    """Only what can be plugged in changes, and only by way of KubeVirt's own accounts."""
    try:
        if same_spec(request.new, request.old):
            return []
        if trusted:
            return hotplug_causes(request.new, request.old, settings.cluster)
        message = (
            "cannot change while the VMI is there: change the VirtualMachine's template, or make a new VMI"
        )
        return [Cause("spec", NOT_SUPPORTED, message)]
    except FieldError as error:
        return [Cause(error.field, INVALID, error.message)]


def _foreign_node(request: Request, settings: Settings) -> list[Cause]:
    """An agent writes VMIs of its own node alone, and never says where one goes (``vmi-update-admitter.go:64-101``)."""
    if request.username not in settings.agents or not settings.cluster.gate("NodeRestriction"):
        return []
    if not request.node:
        return [Cause("", INVALID, "the agent's token names no node: bind it to the agent's pod")]
    before, after = _status(request.old), _status(request.new)
    target = get_mapping(before, "migrationState", "status.").get("targetNode") or ""
    if request.node != before.get("nodeName", "") and request.node != target:
        return [Cause("", INVALID, f"the agent of {shown(request.node)} may not change VMIs of other nodes")]
    wanted = get_mapping(after, "migrationState", "status.").get("targetNode") or ""
    if not target and wanted:
        return [Cause("status.migrationState.targetNode", INVALID, "is not for an agent to set")]
    return []
