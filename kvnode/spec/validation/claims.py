"""Rules on devices from resource claims (`pkg/dra/admitter/dra_admitter.go`)."""

from __future__ import annotations

from kvnode.spec.cause import DUPLICATE, shown
from kvnode.spec.validation.names import dns_label_fault, dns_subdomain_fault
from kvnode.spec.validation.review import Json, Review

_Pairs = dict[tuple[str, str], int]


def check_resource_claims(review: Review) -> None:
    """Each claim has a unique name and one origin (dra_admitter.go:126)."""
    names: set[str] = set()
    for index, claim in enumerate(review.spec.get("resourceClaims", [])):
        path = f"resourceClaims[{index}]"
        name = claim.get("name", "")
        if not name:
            review.required(f"{path}.name", "must be given")
        elif name in names:
            review.add(DUPLICATE, f"{path}.name", f"is {shown(name)} again: names are unique")
        else:
            fault = dns_label_fault(name)
            if fault:
                review.invalid(f"{path}.name", f"is {shown(name)}: {fault}")
            names.add(name)
        origins = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if field in claim]
        if len(origins) != 1:
            review.invalid(path, "must have exactly one of resourceClaimName and resourceClaimTemplateName")
        for field in origins:
            fault = dns_subdomain_fault(claim[field])
            if fault:
                review.invalid(f"{path}.{field}", f"is {shown(claim[field])}: {fault}")


def check_claimed_devices(review: Review) -> None:
    """Devices are of a plugin or a claim, and no claim's request is used twice (dra_admitter.go:69)."""
    used: set[str] = set()
    gpus = _check_devices(review, "gpus", used, gate="GPUsWithDRA", mixed=False)
    host_devices = _check_devices(review, "hostDevices", used, gate="HostDevicesWithDRA", mixed=True)
    networks: _Pairs = {}
    if review.config.gate("NetworkDevicesWithDRA"):
        for index, network in enumerate(review.networks):
            claim = network.get("resourceClaim") or {}
            if claim.get("claimName") and claim.get("requestName"):
                networks.setdefault((claim["claimName"], claim["requestName"]), index)
    owners: dict[tuple[str, str], str] = {}
    for base, pairs in (
        ("domain.devices.gpus", gpus),
        ("domain.devices.hostDevices", host_devices),
        ("networks", networks),
    ):
        for pair, index in pairs.items():
            owner = owners.setdefault(pair, f"{base}[{index}]")
            if owner != f"{base}[{index}]":
                review.add(DUPLICATE, f"{base}[{index}]", f"has the claim and request of {owner}")
    if not used <= {claim.get("name", "") for claim in review.spec.get("resourceClaims", [])}:
        message = "must list every claim that domain.devices.gpus and .hostDevices use"
        review.invalid("resourceClaims", message)


def _check_devices(review: Review, kind: str, used: set[str], *, gate: str, mixed: bool) -> _Pairs:
    """Check one list of devices, add its claims to `used`, return its pairs (dra_admitter.go:296)."""
    path = f"domain.devices.{kind}"
    claimed: list[tuple[int, Json]] = []
    plain: list[Json] = []
    for index, device in enumerate(review.devices.get(kind, [])):
        if not device.get("deviceName") and _has_claim(device):
            claimed.append((index, device))
        else:
            plain.append(device)
    if not mixed and claimed and plain:
        review.invalid(path, "has devices with a deviceName and with a claim: keep to one kind")
        return {}
    for device in plain:
        if not device.get("deviceName"):
            review.required(path, f"must each have a deviceName or a claim: {shown(device.get('name', ''))}")
        elif _has_claim(device):
            review.invalid(path, f"must each have a deviceName or a claim, not both: {shown(device['name'])}")
    if claimed and not review.config.gate(gate):
        review.invalid(path, f"has devices with a claim, which need the feature gate {gate}")
        return {}
    return _claim_pairs(review, path, claimed, used)


def _claim_pairs(review: Review, path: str, claimed: list[tuple[int, Json]], used: set[str]) -> _Pairs:
    pairs: _Pairs = {}
    for index, device in claimed:
        claim, request = device.get("claimName", ""), device.get("requestName", "")
        if not claim:
            review.required(f"{path}[{index}].claimName", "must be given")
        if not request:
            review.required(f"{path}[{index}].requestName", "must be given")
        if not claim or not request:
            continue
        used.add(claim)
        if pairs.setdefault((claim, request), index) != index:
            review.add(DUPLICATE, f"{path}[{index}]", "has the claimName and requestName of another device")
    return pairs


def _has_claim(device: Json) -> bool:
    """Whether a claim is there: the API embeds it, so that either field makes one."""
    return "claimName" in device or "requestName" in device


RULES = (check_resource_claims, check_claimed_devices)
