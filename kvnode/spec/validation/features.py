"""Rules on features: what Hyper-V enlightenments need of one another."""

from __future__ import annotations

from kvnode.spec.cause import shown
from kvnode.spec.validation.review import Json, Review

# Feature -> what it needs (pkg/virt-api/webhooks/hyperv.go:114).
_NEEDS = {
    "evmcs": "vapic",
    "ipi": "vpindex",
    "tlbflush": "vpindex",
    "synictimer": "synic",
    "synic": "vpindex",
}
_HYPERV = "domain.features.hyperv"


def check_hyperv_dependencies(review: Review) -> None:
    """A feature that is on needs the one below it to be on (hyperv.go:96,198; the path comes doubled)."""
    hyperv = _hyperv(review)
    for name, needed in _NEEDS.items():
        if _enabled(hyperv, name) and not _enabled(hyperv, needed):
            review.invalid(f"{_HYPERV}.{_HYPERV}.{name}", f"needs {_HYPERV}.{needed} to be enabled")


def check_evmcs(review: Review) -> None:
    """Enlightened VMCS needs the CPU feature vmx (hyperv.go:211-227)."""
    evmcs = _hyperv(review).get("evmcs")
    if evmcs is None or evmcs.get("enabled") is False:
        return
    features = (review.cpu or {}).get("features", [])
    if not features:
        review.required("domain.cpu.features", f"must have vmx with policy require, for {_HYPERV}.evmcs")
    for index, feature in enumerate(features):
        policy = feature.get("policy", "")
        if feature.get("name") == "vmx" and policy != "require":
            path = f"domain.cpu.features[{index}].policy"
            review.invalid(path, f"is {shown(policy)}: must be require, for {_HYPERV}.evmcs")


def check_hyperv_mode(review: Review) -> None:
    """Single features and passthrough exclude each other (hyperv.go:184)."""
    features = review.domain.get("features") or {}
    if "hyperv" in features and "hypervPassthrough" in features:
        review.invalid(_HYPERV, "cannot be set beside hypervPassthrough: keep one of them")


def _hyperv(review: Review) -> Json:
    return (review.domain.get("features") or {}).get("hyperv") or {}


def _enabled(hyperv: Json, name: str) -> bool:
    """Whether a feature says that it is on; not set is not on, as defaulting comes first."""
    return (hyperv.get(name) or {}).get("enabled") is True


RULES = (check_hyperv_dependencies, check_evmcs, check_hyperv_mode)
