"""What a VMI's cloud-init volume holds, with the secrets that it refers to."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvnode.launcher import paths
from kvnode.launcher.cloudinit import metadata
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.log import logger

REASON = "CloudInitFailed"

NO_CLOUD, CONFIG_DRIVE = "noCloud", "configDrive"
_FIELDS = {"cloudInitNoCloud": NO_CLOUD, "cloudInitConfigDrive": CONFIG_DRIVE}


@dataclass(frozen=True)
class CloudInitData:
    """The content of a cloud-init volume, whatever its data source (``pkg/cloud-init/cloud-init.go:65``)."""

    source: str
    """``noCloud`` or ``configDrive``."""

    volume: str
    user_data: bytes
    network_data: bytes
    metadata: metadata.Metadata | None
    """None: dropped by a hook."""

    @property
    def is_complete(self) -> bool:
        """Whether there are user data and metadata; network data alone does for an ISO too."""
        return bool(self.user_data) and self.metadata is not None


def read(vmi: Mapping[str, Any], secrets: Path | None = None) -> CloudInitData | None:
    """Read the VMI's first cloud-init volume (``pkg/cloud-init/cloud-init.go:115``); None if it has none.

    ``secrets`` holds the secrets' files, a directory a volume. What a secret holds wins over what the volume
    says, plain text over its base64 form. Raises LauncherError when there are neither user nor network data,
    base64 that is none, or SSH keys whose secret is not there.
    """
    directory = paths.SECRETS if secrets is None else secrets
    for volume in vmi["spec"].get("volumes") or []:
        for key, source in _FIELDS.items():
            content = volume.get(key)
            if content is not None:
                keys = _public_keys(vmi, source, directory)
                where = f"volume {volume['name']}: {key}"
                files = directory / volume["name"]
                user = _secret(content, "secretRef", files, ("userdata", "userData"), where)
                network = _secret(
                    content, "networkDataSecretRef", files, ("networkdata", "networkData"), where
                )
                user = user or _content(content, "userData", where)
                network = network or _content(content, "networkData", where)
                if not user and not network:
                    raise LauncherError(REASON, f"{where}: there must be user data or network data")
                return CloudInitData(source, volume["name"], user, network, metadata.of_vmi(vmi, keys))
    return None


def _content(source: Mapping[str, Any], key: str, where: str) -> bytes:
    text = source.get(key)
    if text:
        return str(text).encode("utf-8", "replace")
    encoded = source.get(f"{key}Base64")
    if not encoded:
        return b""
    try:
        return base64.b64decode(str(encoded).replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise LauncherError(REASON, f"{where}.{key}Base64 is not base64") from None


def _secret(
    source: Mapping[str, Any], reference: str, directory: Path, names: Sequence[str], where: str
) -> bytes:
    """Return the first file of those names; b"" when none is asked for, or there is none."""
    if source.get(reference) is None:
        return b""
    for name in names:
        try:
            return (directory / name).read_bytes()
        except OSError:
            continue
    logger.warning("%s.%s: the secret has no readable key %s", where, reference, " or ".join(names))
    return b""


def _public_keys(vmi: Mapping[str, Any], source: str, secrets: Path) -> dict[str, str]:
    """Return the SSH keys that the access credentials bring this way (``pkg/cloud-init/cloud-init.go:169``).

    They are numbered through all secrets, by the names of the files in each.
    """
    found: list[str] = []
    for index, credential in enumerate(vmi["spec"].get("accessCredentials") or []):
        public_key = credential.get("sshPublicKey") or {}
        if (public_key.get("propagationMethod") or {}).get(source) is None:
            continue
        name = ((public_key.get("source") or {}).get("secret") or {}).get("secretName")
        if not name:
            continue
        try:
            files = sorted((secrets / f"{name}-access-cred").iterdir())
            found += [_text(file) for file in files if _is_key(file)]
        except OSError as error:
            where = f"accessCredentials[{index}].sshPublicKey.source.secret"
            raise LauncherError(REASON, f"{where}: {name} cannot be read: {error.strerror}") from None
    return {str(number): key for number, key in enumerate(filter(None, found))}


def _is_key(file: Path) -> bool:
    # Kubelet's own files begin with two dots.
    return not file.name.startswith("..") and (file.is_symlink() or not file.is_dir())


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "replace")
