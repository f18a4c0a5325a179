"""Is a VirtualMachine one that KubeVirt v1.9 admits?

(``pkg/virt-api/webhooks/validating-webhook/admitters/vms-admitter.go``, ``pkg/storage/admitters``)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.api.quantity import Quantity
from kvnode.spec.cause import INVALID, NOT_SUPPORTED, REQUIRED, TYPE_INVALID, Cause, kind, shown
from kvnode.spec.config import ClusterConfig
from kvnode.spec.defaults.hotplug import plugging_fault
from kvnode.spec.defaults.instance import apply_defaults
from kvnode.spec.validation import (
    RULES,
    cpu,
    devices,
    disks,
    features,
    instance,
    memory,
    networks,
    pr_enabled,
    volumes,
)
from kvnode.spec.validation.review import Json, Review
from kvnode.spec.validation.schema import SchemaReader

RUN_STRATEGIES = ("Always", "RerunOnFailure", "Manual", "Halted", "Once")
RECEIVER, RECEIVER_GATE = "WaitAsReceiver", "DecentralizedLiveMigration"

_ONLY_OF_INSTANCES = frozenset(
    {
        *features.RULES,
        instance.check_architecture,
        cpu.check_model_arm64,
        devices.check_sound_arm64,
        disks.check_disk_bus_arm64,
        memory.check_memory_given,
        volumes.check_volume_devices,
    }
)
"""Rules that are asked when the VMI is made, and not before (``vmi-create-admitter.go:118-130``)."""

_ONLY_OF_NEW = frozenset({networks.check_discontinued})
"""Rules that an update need not keep (``vms-admitter.go:134-147``)."""

_CREATED = tuple(rule for rule in RULES if rule not in _ONLY_OF_INSTANCES)
_UPDATED = tuple(rule for rule in _CREATED if rule not in _ONLY_OF_NEW)


def validate_machine(
    vm: Mapping[str, Any],
    architecture: str,
    config: ClusterConfig | Mapping[str, Any] | None = None,
    *,
    creating: bool = True,
) -> list[Cause]:
    """Find what KubeVirt's admission refuses of a VirtualMachine.

    The template is looked at with its defaults, whatever of them is written in it.

    Args:
        vm: a VirtualMachine as JSON gives it. Anything else is answered with a cause, never raised.
        architecture: amd64, arm64 or s390x: for a template that names none.
        config: the cluster's settings, or ``spec.configuration`` of the KubeVirt object; None: none set.
        creating: whether the VM is new: one that is there keeps what has been discontinued since.

    Returns:
        Causes, none for a valid VM. Wrong types, unknown and missing fields come alone.

    Raises:
        ValueError: `config` is malformed.
    """
    cluster = ClusterConfig.of(config)
    document, causes = _read(vm)
    if causes:
        return causes
    spec, template = document["spec"], vm["spec"]["template"]
    try:
        vmi = {name: template[name] for name in ("metadata", "spec") if template.get(name) is not None}
        defaulted = apply_defaults(vmi, architecture, cluster)
    except FieldError as error:
        return [_of_template(Cause(error.field, INVALID, error.message))]
    rules = _CREATED if creating else _UPDATED
    review = _reviewed(defaulted, architecture, cluster, rules, pr_enabled(config, cluster))
    causes = [_of_template(cause) for cause in review.causes]
    return (
        causes
        + _data_volumes(spec)
        + run_strategy_causes(spec, cluster)
        + _live_update(template["spec"], defaulted["spec"], cluster)
        + _instance_types(spec)
    )


def run_strategy_causes(spec: Json, config: ClusterConfig) -> list[Cause]:
    """Exactly one of running and runStrategy says when the VM runs (``vms-admitter.go:228``)."""
    strategy = spec.get("runStrategy")
    if "running" in spec and strategy is not None:
        message = "cannot be there together with runStrategy: remove it, it is deprecated"
        return [Cause("spec.running", INVALID, message)]
    if strategy is None:
        if "running" in spec:
            return []
        message = (
            f"or better spec.runStrategy must be set: give runStrategy one of {', '.join(RUN_STRATEGIES)}"
        )
        return [Cause("spec.running", INVALID, message)]
    if strategy in RUN_STRATEGIES or (strategy == RECEIVER and config.gate(RECEIVER_GATE)):
        return []
    if strategy == RECEIVER:
        return [
            Cause("spec.runStrategy", INVALID, f"is {RECEIVER}, which needs the feature gate {RECEIVER_GATE}")
        ]
    message = f"is {shown(strategy)}: use one of {', '.join(RUN_STRATEGIES)}"
    return [Cause("spec.runStrategy", INVALID, message)]


def _read(vm: object) -> tuple[Json, list[Cause]]:
    """A typed copy of a VM, and the causes why it cannot be used."""
    if not isinstance(vm, Mapping):
        return {}, [Cause("", TYPE_INVALID, f"a VirtualMachine must be an object, not {kind(vm)}")]
    reader = SchemaReader()
    document = reader.read(vm, "VirtualMachine")
    if not reader.causes and "spec" not in document["spec"]["template"]:
        message = "is required: give the spec of the VM's instances"
        reader.causes.append(Cause("spec.template.spec", REQUIRED, message))
    return document, reader.causes


def _reviewed(
    vmi: Json, architecture: str, config: ClusterConfig, rules: tuple[Any, ...], reservation: bool
) -> Review:
    """The template's VMI under these rules; it passed the schema, and so does what defaulting made of it."""
    review = Review(SchemaReader().read(vmi, "VirtualMachineInstance"), architecture, config, reservation)
    for rule in rules:
        rule(review)
    return review


def _of_template(cause: Cause) -> Cause:
    """A cause of the template's VMI by its path in the VM."""
    return replace(cause, field=f"spec.template.{cause.field}" if cause.field else "spec.template")


def _data_volumes(spec: Json) -> list[Cause]:
    """Each template of a DataVolume is whole, and used by a volume (``data-volume-template.go``)."""
    used = set()
    for volume in (spec["template"].get("spec") or {}).get("volumes", []):
        used.add((volume.get("persistentVolumeClaim") or {}).get("claimName"))
        used.add((volume.get("dataVolume") or {}).get("name"))
    causes = []
    for index, item in enumerate(spec.get("dataVolumeTemplates", [])):
        # The path is singular in KubeVirt's answers too.
        path = f"spec.dataVolumeTemplate[{index}]"
        name = item.get("metadata", {}).get("name")
        fault = _data_volume_fault(path, name, item["spec"])
        if fault is None and name not in used:
            message = f"is named {shown(name)}: a volume of the template must use it, as dataVolume or claim"
            fault = Cause(path, REQUIRED, message)
        if fault is not None:
            causes.append(fault)
    return causes


def _data_volume_fault(path: str, name: str | None, spec: Json) -> Cause | None:
    if not name:
        return Cause(f"{path}.name", REQUIRED, "must be given, as metadata.name")
    if ("pvc" in spec) == ("storage" in spec):
        return Cause(f"{path}.PVC.Storage", INVALID, "needs spec.storage or spec.pvc, one of them")
    target: Json = spec["pvc"] if "pvc" in spec else spec["storage"]
    outside = "dataSourceRef" in target or "dataSource" in target
    inside = "source" in spec or "sourceRef" in spec
    if outside and inside:
        message = "cannot be there together with the dataSource of the claim: keep one"
        return Cause(f"{path}.source", INVALID, message)
    if not outside and not inside:
        return Cause(f"{path}.source.sourceRef", INVALID, "must be set: give a source or a sourceRef")
    sources = sorted(spec["source"]) if "source" in spec else ["none needed"]
    if len(sources) != 1:
        found = f"has {' and '.join(sources)}" if sources else "is empty"
        return Cause(f"{path}.source", INVALID, f"{found}: exactly one source must be set")
    return None


def _live_update(written: Json, defaulted: Json, config: ClusterConfig) -> list[Cause]:
    """What the template asks for to be plugged in later can be (``vms-admitter.go:275``); a count of sockets above
    the most is refused by the VMI's own rules already.
    """
    most = (((written.get("domain") or {}).get("memory")) or {}).get("maxGuest")
    if most is None or not config.live_update:
        return []
    fault = plugging_fault(defaulted, Quantity.from_json(most))
    if fault is None:
        return []
    return [
        Cause(
            "spec.template.spec.domain.memory.guest", INVALID, f"does not let memory.maxGuest be set: {fault}"
        )
    ]


def _instance_types(spec: Json) -> list[Cause]:
    """Instance types are not read yet: a VM that names one would start with other CPUs and memory."""
    return [
        Cause(
            f"spec.{name}", NOT_SUPPORTED, f"is not supported: write what the {what} holds into the template"
        )
        for name, what in (("instancetype", "instance type"), ("preference", "preference"))
        if name in spec
    ]
