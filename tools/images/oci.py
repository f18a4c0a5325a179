"""OCI archives of one layer, which ``ctr images import`` takes without a registry."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from pathlib import Path

_MEDIA = "application/vnd.oci.image"
_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}


def write_archive(
    root: Path,
    archive: Path,
    references: str | Sequence[str],
    entrypoint: Sequence[str] | None = None,
    user: str = "",
) -> str:
    """Write ``archive``, an OCI image of one layer; the answer is the digest of its manifest.

    Arguments:
        root: a tar of the root file system, not compressed
        references: the image's name with tag, e.g. ``kvnode.test/launcher:1``, or several
        entrypoint: the program and arguments that containers run unless told otherwise
        user: ``uid:gid``, root when empty
    """
    with root.open("rb") as layer:
        digest = hashlib.file_digest(layer, "sha256").hexdigest()
    config: dict[str, object] = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
    if entrypoint:
        config["Entrypoint"] = list(entrypoint)
    if user:
        config["User"] = user
    machine = platform.machine()
    image = _encode(
        {
            "architecture": _ARCHITECTURE.get(machine, machine),
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    )
    layer_descriptor = {
        "mediaType": f"{_MEDIA}.layer.v1.tar",
        "digest": f"sha256:{digest}",
        "size": root.stat().st_size,
    }
    manifest = _encode(
        {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": _descriptor(f"{_MEDIA}.config.v1+json", image),
            "layers": [layer_descriptor],
        }
    )
    entries = [
        {**_descriptor(f"{_MEDIA}.manifest.v1+json", manifest), "annotations": _names(reference)}
        for reference in ([references] if isinstance(references, str) else references)
    ]
    with tarfile.open(archive, "w") as out:
        add(out, "oci-layout", _encode({"imageLayoutVersion": "1.0.0"}))
        add(out, "index.json", _encode({"schemaVersion": 2, "manifests": entries}))
        for blob in (image, manifest):
            add(out, f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob)
        info = tarfile.TarInfo(f"blobs/sha256/{digest}")
        info.size = root.stat().st_size
        with root.open("rb") as layer:
            out.addfile(info, layer)
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def add(out: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a plain file of root's."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    out.addfile(info, io.BytesIO(content))


def _names(reference: str) -> dict[str, str]:
    return {
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference.rpartition(":")[2],
    }


def _descriptor(media: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": media, "digest": f"sha256:{hashlib.sha256(blob).hexdigest()}", "size": len(blob)}


def _encode(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
