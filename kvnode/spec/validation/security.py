"""Rules on what a guest is given in confidence: launch security and access credentials."""

from __future__ import annotations

from kvnode.spec.cause import FORBIDDEN
from kvnode.spec.validation.review import Json, Review, feature_on

_GATES = {"sev": "WorkloadEncryptionSEV", "snp": "WorkloadEncryptionSEV", "tdx": "WorkloadEncryptionTDX"}
_TITLES = {"sev": "SEV", "snp": "SEV-SNP", "tdx": "TDX"}


def check_launch_security(review: Review) -> None:
    """Encrypted guests by architecture (vmi-create-admitter.go:589, amd64.go:79; path without domain)."""
    security = review.domain.get("launchSecurity")
    if security is None or review.architecture == "s390x":
        return
    if review.architecture != "amd64":
        review.invalid("architecture", "has no launchSecurity: amd64 and s390x do")
        return
    kinds = [kind for kind in _GATES if kind in security]
    if len(kinds) != 1:
        review.add(FORBIDDEN, "launchSecurity", "must be exactly one of sev, snp and tdx")
    elif not review.config.gate(_GATES[kinds[0]]):
        review.invalid("launchSecurity", f"needs the feature gate {_GATES[kinds[0]]}")
    else:
        _check_kind(review, kinds[0], security)


def _check_kind(review: Review, kind: str, security: Json) -> None:
    """What one kind of encryption bears (amd64.go:113-171)."""
    path, title = "launchSecurity", _TITLES[kind]
    if kind == "tdx" and feature_on((review.domain.get("features") or {}).get("smm")):
        review.invalid(path, "is TDX, which works without SMM only: turn features.smm off")
    efi = ((review.domain.get("firmware") or {}).get("bootloader") or {}).get("efi")
    if efi is None:
        review.invalid(path, f"is {title}, which boots by UEFI: set firmware.bootloader.efi")
    else:
        if kind != "tdx" and efi.get("secureBoot", True) is not False:
            review.invalid(path, f"is {title}, which works without Secure Boot only: set secureBoot: false")
        if kind != "sev" and efi.get("persistent"):
            review.invalid(path, f"is {title}, which keeps no EFI variables: remove efi.persistent")
    if "attestation" in security[kind] and kind == "sev" and review.spec.get("startStrategy") != "Paused":
        review.invalid(path, "is SEV with attestation, which needs startStrategy: Paused")
    for index, interface in enumerate(review.interfaces):
        if "bootOrder" in interface:
            message = f"is {title}, which boots from no interface: remove the bootOrder of interface {index}"
            review.invalid(path, message)


def check_access_credentials(review: Review) -> None:
    """Each credential is of one kind, from one source, by one way (vmi-create-admitter.go:1491)."""
    for index, credential in enumerate(review.spec.get("accessCredentials", [])):
        path = f"accessCredentials[{index}]"
        key, password = credential.get("sshPublicKey"), credential.get("userPassword")
        if key is not None:
            _check_ways(review, f"{path}.sshPublicKey.propagationMethod", key)
            ways = ("configDrive", "noCloud", "qemuGuestAgent")
            _check_single(review, f"{path}.sshPublicKey", key, ways)
        if password is not None:
            _check_single(review, f"{path}.userPassword", password, ("qemuGuestAgent",))
        if (key is None) == (password is None):
            review.invalid(path, "must be exactly one of sshPublicKey and userPassword")


def _check_single(review: Review, path: str, credential: Json, ways: tuple[str, ...]) -> None:
    """One source and one way (vmi-create-admitter.go:1554-1599)."""
    if "secret" not in (credential.get("source") or {}):
        review.invalid(f"{path}.source", "must have a secret")
    method = credential.get("propagationMethod") or {}
    if sum(way in method for way in ways) != 1:
        review.invalid(f"{path}.propagationMethod", f"must have exactly one way: {' or '.join(ways)}")


def _check_ways(review: Review, path: str, key: Json) -> None:
    """What each way of a public key needs (vmi-create-admitter.go:1519-1552)."""
    method = key.get("propagationMethod") or {}
    for way, source in (("noCloud", "cloudInitNoCloud"), ("configDrive", "cloudInitConfigDrive")):
        if way in method and not any(source in volume for volume in review.volumes):
            review.invalid(path, f"is {way}, which needs a {source} volume among spec.volumes")
    agent = method.get("qemuGuestAgent")
    if agent is not None and not agent.get("users"):
        review.invalid(f"{path}.qemuGuestAgent.users", "must name a user at least")


RULES = (check_launch_security, check_access_credentials)
