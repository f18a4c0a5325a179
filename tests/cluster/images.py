"""Container images without a registry: one-layer OCI archives that containerd imports."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import tarfile
import tempfile
from pathlib import Path

from tests.cluster.binaries import cache_directory
from tests.cluster.errors import ClusterError

PAUSE = "kvnode.test/pause:1"
BUSYBOX = "kvnode.test/busybox:1"
APPLETS = ("sh", "cat", "echo", "env", "id", "ip", "ls", "nc", "ping", "ps", "sleep", "touch", "true", "wget")
_MEDIA = "application/vnd.oci.image"
_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}
_BLOCK = 1 << 20


def standard_images() -> tuple[Path, Path]:
    """Archives of the pause image and of busybox, out of the cache or made now from Debian's static busybox.

    Raises:
        ClusterError: busybox is not there.
    """
    busybox = Path("/bin/busybox")
    if not busybox.exists():
        raise ClusterError("/bin/busybox is missing: install the Debian package busybox-static")
    directory = cache_directory() / "images" / hashlib.sha256(busybox.read_bytes()).hexdigest()[:12]
    archives = (directory / "pause.tar", directory / "busybox.tar")
    if all(archive.exists() for archive in archives):
        return archives
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        root = Path(scratch) / "root.tar"
        _busybox_root(busybox, root)
        sleep = ["/bin/busybox", "sleep", "1000000000"]
        for archive, reference, entrypoint in zip(
            archives, (PAUSE, BUSYBOX), (sleep, ["/bin/sh"]), strict=True
        ):
            partial = Path(scratch) / archive.name
            write_archive(root, partial, reference, entrypoint)
            partial.rename(archive)
    return archives


def write_archive(
    root: Path, archive: Path, reference: str, entrypoint: list[str] | None = None, user: str = ""
) -> None:
    """Write ``archive``, an OCI image of one layer.

    Arguments:
        root: a tar of the root file system, not compressed
        reference: the image's name with tag, e.g. ``kvnode.test/launcher:1``
        entrypoint: the program and arguments that containers run unless told otherwise
        user: ``uid:gid``, root when empty
    """
    with root.open("rb") as layer:
        digest = hashlib.file_digest(layer, "sha256").hexdigest()
    config: dict[str, object] = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
    if entrypoint:
        config["Entrypoint"] = entrypoint
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
    names = {
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference.rpartition(":")[2],
    }
    entry = {**_descriptor(f"{_MEDIA}.manifest.v1+json", manifest), "annotations": names}
    with tarfile.open(archive, "w") as out:
        _add(out, "oci-layout", _encode({"imageLayoutVersion": "1.0.0"}))
        _add(out, "index.json", _encode({"schemaVersion": 2, "manifests": [entry]}))
        for blob in (image, manifest):
            _add(out, f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob)
        info = tarfile.TarInfo(f"blobs/sha256/{digest}")
        info.size = root.stat().st_size
        with root.open("rb") as layer:
            out.addfile(info, layer)


def _busybox_root(busybox: Path, tar: Path) -> None:
    with tarfile.open(tar, "w") as out:
        for name in ("bin", "etc", "proc", "sys", "dev", "tmp", "var"):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            out.addfile(directory)
        program = tarfile.TarInfo("bin/busybox")
        program.size, program.mode = os.stat(busybox).st_size, 0o755  # noqa: PTH116
        with busybox.open("rb") as source:
            out.addfile(program, source)
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            out.addfile(link)
        _add(out, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\nqemu:x:107:107:qemu:/:/bin/sh\n")


def _descriptor(media: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": media, "digest": f"sha256:{hashlib.sha256(blob).hexdigest()}", "size": len(blob)}


def _encode(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _add(out: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    out.addfile(info, io.BytesIO(content))
