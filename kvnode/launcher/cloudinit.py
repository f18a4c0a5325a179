"""The NoCloud data source: user data, network data and metadata on an ISO that cloud-init finds
by its label.
"""

from __future__ import annotations

import base64
import binascii
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.image import run_tool

#: Volume label that cloud-init looks for.
LABEL = "cidata"

_REASON = "CloudInitFailed"
# A hostname is one DNS label (``pkg/util/net/dns/dns.go:33``).
_LONGEST_HOSTNAME = 63
# The cluster-wide kind of instance type is named in preference (``pkg/cloud-init/cloud-init.go:122``).
_INSTANCE_TYPES = ("kubevirt.io/cluster-instancetype-name", "kubevirt.io/instancetype-name")


@dataclass(frozen=True)
class NoCloudData:
    """The files on the ISO."""

    user_data: bytes
    network_config: bytes
    meta_data: bytes

    def files(self) -> dict[str, bytes]:
        """Return name to content; network-config is there only when there is any."""
        files = {"user-data": self.user_data, "meta-data": self.meta_data}
        if self.network_config:
            files["network-config"] = self.network_config
        return files


def prepare(vmi: Mapping[str, Any]) -> None:
    """Write the ISO of the VMI's first cloudInitNoCloud volume, if it has one; raises LauncherError."""
    for volume in vmi["spec"].get("volumes") or []:
        source = volume.get("cloudInitNoCloud")
        if source is not None:
            iso = paths.no_cloud_iso(vmi["metadata"]["namespace"], vmi["metadata"]["name"])
            write_iso(iso, no_cloud_data(vmi, source, volume["name"]))
            return


def no_cloud_data(vmi: Mapping[str, Any], source: Mapping[str, Any], volume: str) -> NoCloudData:
    """Read a volume's data (``pkg/cloud-init/cloud-init.go:374``); raises LauncherError.

    Plain text wins over its base64 form. One of user and network data must be there.
    """
    user_data = _content(source, "userData", volume)
    network_config = _content(source, "networkData", volume)
    if not user_data and not network_config:
        raise LauncherError(_REASON, f"volume {volume}: cloudInitNoCloud needs userData or networkData")
    return NoCloudData(user_data, network_config, _meta_data(vmi))


def _content(source: Mapping[str, Any], key: str, volume: str) -> bytes:
    text = source.get(key)
    if text:
        return str(text).encode()
    encoded = source.get(f"{key}Base64")
    if not encoded:
        return b""
    try:
        return base64.b64decode(str(encoded).replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise LauncherError(_REASON, f"volume {volume}: cloudInitNoCloud.{key}Base64 is not base64") from None


def _meta_data(vmi: Mapping[str, Any]) -> bytes:
    """Return the metadata as JSON: the firmware's UUID as instance, and a hostname."""
    metadata, spec = vmi["metadata"], vmi["spec"]
    annotations = metadata.get("annotations") or {}
    content: dict[str, str] = {}
    instance_type = next((annotations[key] for key in _INSTANCE_TYPES if annotations.get(key)), "")
    if instance_type:
        content["instance-type"] = instance_type
    content["instance-id"] = str((spec.get("domain", {}).get("firmware") or {}).get("uuid", ""))
    content["local-hostname"] = spec.get("hostname") or metadata["name"].split(".")[0][:_LONGEST_HOSTNAME]
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":  # as Go's JSON encoder writes them
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def write_iso(iso: Path, data: NoCloudData) -> None:
    """Write the ISO whole or not at all; the files that it is made of do not stay. Raises LauncherError."""
    directory = iso.parent / "data"
    staging = iso.with_name(iso.name + ".staging")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in data.files().items():
            file = directory / name
            file.touch(mode=0o600)
            file.write_bytes(content)
        staging.unlink(missing_ok=True)
        arguments = ["xorrisofs", "-quiet", "-output", str(staging), "-volid", LABEL, "-joliet", "-rock"]
        run_tool([*arguments, "-partition_cyl_align", "on", str(directory)], _REASON)
        staging.replace(iso)
    except OSError as error:
        raise LauncherError(_REASON, f"the cloud-init disk cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(directory, ignore_errors=True)
