"""What the launcher's pod, the launcher itself, or any XML does not take."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvnode.api.quantity import Quantity
from kvnode.spec.cause import INVALID, Cause, child, shown
from kvnode.spec.validation.names import (
    dns_label_fault,
    dns_subdomain_fault,
    label_value_fault,
    qualified_name_fault,
)
from kvnode.spec.validation.review import ZERO, Review

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SMALLEST_IMAGE = Quantity("1Mi")
_COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def check_names(review: Review) -> None:
    """Names that no object can have: the API server refuses the instance itself."""
    for field, fault in (("name", dns_subdomain_fault), ("namespace", dns_label_fault)):
        text = review.metadata.get(field, "")
        if text and (wrong := fault(text)):
            message = f"is {shown(text)}: the API server refuses it, it {wrong}"
            review.causes.append(Cause(f"metadata.{field}", INVALID, message))


def check_grace_period(review: Review) -> None:
    """A negative time to shut down: the API server refuses the launcher's pod."""
    seconds = review.spec.get("terminationGracePeriodSeconds", 0)
    if seconds < 0:
        message = f"is {seconds}: the launcher's pod is refused, use 0 (no grace) or more"
        review.invalid("terminationGracePeriodSeconds", message)


def check_probe_counts(review: Review) -> None:
    """Negative times and counts of a probe: the API server refuses the launcher's pod."""
    for path in ("readinessProbe", "livenessProbe"):
        probe = review.spec.get(path) or {}
        for name in _COUNTS:
            if probe.get(name, 0) < 0:
                message = f"is {probe[name]}: the launcher's pod is refused, it must not be negative"
                review.invalid(f"{path}.{name}", message)


def check_image_sizes(review: Review) -> None:
    """Images are made in whole MiB, rounded down (`pkg/util/util.go`): less than one cannot be made."""
    for index, volume in enumerate(review.volumes):
        sizes = []
        if "emptyDisk" in volume:
            sizes.append(("emptyDisk.capacity", volume["emptyDisk"].get("capacity", ZERO)))
        if (volume.get("hostDisk") or {}).get("type") == "DiskOrCreate":
            sizes.append(("hostDisk.capacity", volume["hostDisk"].get("capacity", ZERO)))
        for field, size in sizes:
            if size < _SMALLEST_IMAGE:
                message = f"is {size}: no image of less than 1Mi can be made"
                review.invalid(f"volumes[{index}].{field}", message)


def check_sources(review: Review) -> None:
    """Sources that name nothing: the API server refuses the launcher's pod."""
    for index, volume in enumerate(review.volumes):
        for source, field in (("persistentVolumeClaim", "claimName"), ("containerDisk", "image")):
            if source in volume and not volume[source].get(field):
                message = "is empty: the launcher's pod is refused"
                review.invalid(f"volumes[{index}].{source}.{field}", message)


def check_node_selector(review: Review) -> None:
    """Labels of nodes that no node can have: the API server refuses the launcher's pod."""
    for key, value in review.spec.get("nodeSelector", {}).items():
        for part, fault in ((key, qualified_name_fault(key)), (value, label_value_fault(value))):
            if fault:
                message = f"has {shown(part)}: the launcher's pod is refused, it {fault}"
                review.invalid(child("nodeSelector", key), message)


def check_characters(review: Review) -> None:
    """Characters that no XML carries, so that no domain can be made: control characters, lone surrogates."""
    for path, text in _texts(review.domain, "domain"):
        found = _NOT_XML.search(text)
        if found:
            review.invalid(path, f"has the character {found[0]!a}, which libvirt's XML cannot carry")


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    """All strings below a value of the model, which bounds the depth, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, child(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]")


RULES = (
    check_names,
    check_grace_period,
    check_probe_counts,
    check_image_sizes,
    check_sources,
    check_node_selector,
    check_characters,
)
