"""Container images without a registry: one-layer OCI archives that containerd imports."""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
from pathlib import Path

from tests.cluster.binaries import cache_directory
from tests.cluster.errors import ClusterError
from tools.images.oci import add, write_archive

PAUSE = "kvnode.test/pause:1"
BUSYBOX = "kvnode.test/busybox:1"
APPLETS = ("sh", "cat", "echo", "env", "id", "ip", "ls", "nc", "ping", "ps", "sleep", "touch", "true", "wget")


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
        add(out, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\nqemu:x:107:107:qemu:/:/bin/sh\n")
