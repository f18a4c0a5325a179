"""Admission of VirtualMachines (``vm-mutator.go`` and ``vms-admitter.go`` of ``pkg/virt-api/webhooks``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.spec.cause import INVALID, Cause
from kvnode.spec.defaults import DefaultingError, apply_machine_defaults
from kvnode.spec.fields import get_mapping
from kvnode.spec.validation.instance import RESERVED_LABELS
from kvnode.spec.validation.machine import validate_machine
from kvnode.spec.validation.update import data_volume_namespace_causes, machine_update_causes
from kvnode.webhook.reviews import Answer, Request
from kvnode.webhook.settings import Settings

_RUNNING = "spec.running is deprecated: use spec.runStrategy"


def mutate_machine(request: Request, settings: Settings) -> Answer:
    """The template gets what must be the same on every start."""
    if _deleting(request.new):
        return Answer()
    try:
        made = apply_machine_defaults(
            request.new, settings.architecture, settings.cluster, creating=request.creating
        )
    except DefaultingError as error:
        found = validate_machine(
            request.new, settings.architecture, settings.configuration, creating=request.creating
        )
        return Answer(causes=found or [Cause(error.field, INVALID, error.message)])
    if made["spec"] == request.new["spec"]:
        return Answer()
    return Answer(patch=[{"op": "add", "path": "/spec", "value": made["spec"]}])


def validate_machine_request(request: Request, settings: Settings) -> Answer:
    """The rules on a VM, and for one that is there those on changes. One that is being deleted may go."""
    if _deleting(request.new):
        return Answer()
    vm = _without_reserved_labels(request.new) if request.username in settings.accounts else request.new
    causes = validate_machine(vm, settings.architecture, settings.configuration, creating=request.creating)
    if not causes:
        old = None if request.creating else request.old
        causes = data_volume_namespace_causes(vm, old, request.namespace)
        causes += machine_update_causes(vm, old) if old is not None else []
    running = not causes and get_mapping(vm, "spec", "").get("running") is not None
    return Answer(causes=causes, warnings=[_RUNNING] if running else [])


def _deleting(vm: Mapping[str, Any]) -> bool:
    return bool(get_mapping(vm, "metadata", "").get("deletionTimestamp"))


def _without_reserved_labels(vm: Mapping[str, Any]) -> Mapping[str, Any]:
    """The VM whose template lacks the labels that whoever asks may set."""
    try:
        template = vm["spec"]["template"]
        labels = template["metadata"]["labels"]
        kept = {name: value for name, value in labels.items() if name not in RESERVED_LABELS}
        metadata = {**template["metadata"], "labels": kept}
        return {**vm, "spec": {**vm["spec"], "template": {**template, "metadata": metadata}}}
    except (KeyError, TypeError, AttributeError):  # what is not as it should be, the schema tells
        return vm
