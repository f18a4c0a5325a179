"""Cache and I/O modes that depend on the file system: direct I/O is used where it works.

``pkg/virt-launcher/virtwrap/converter/converter.go:400-500``
"""

from __future__ import annotations

import errno
import os
import stat
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

from kvnode.launcher.errors import LauncherError
from kvnode.launcher.log import logger

#: ``supports(path)``: whether the file or device can be opened for direct I/O.
DirectIo = Callable[[str], bool]

# Magic and place of the size in an image's header (qcow2's specification, docs/interop/qcow2.txt of QEMU).
_QCOW2 = b"QFI\xfb"
_QCOW2_SIZE = slice(24, 32)


def supports_direct_io(path: str) -> bool:
    """Tell whether ``path`` opens with O_DIRECT; one that does not open at all does not.

    For a file that will be made later, such as cloud-init's ISO, its directory answers: one is made and removed.
    """
    flags = (
        os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    )  # what is no file, such as a pipe, must not be waited for
    made = False
    try:
        if not path.startswith("/dev/") and not Path(path).exists():
            os.close(os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600))
            made = True
        os.close(os.open(path, flags | os.O_DIRECT))
    except OSError as error:
        if error.errno != errno.EINVAL:
            logger.warning("direct I/O on %s: %s", path, error.strerror)
        return False
    finally:
        if made:
            Path(path).unlink(missing_ok=True)
    return True


def set_disk_modes(xml: str, supports: DirectIo = supports_direct_io) -> str:
    """Fill in the modes that a domain's disks leave open; the disks' files must be there.

    A disk without a cache mode gets ``none`` where its file and that file's backing file allow direct I/O, else
    ``writethrough``. One with cache ``none``, no I/O mode and nothing left to allocate gets ``native``. Raises
    LauncherError for a disk that asks for ``none`` where direct I/O does not work.
    """
    domain = ET.fromstring(xml)  # noqa: S314 - written by the converter
    for disk in domain.iterfind("devices/disk"):
        driver, path = disk.find("driver"), data_path(disk)
        if driver is None or not path:
            continue
        _set_cache(disk, driver, path, supports)
        if driver.get("cache") == "none" and not driver.get("io") and _is_allocated(path):
            driver.set("io", "native")
    return ET.tostring(domain, encoding="unicode")


def _set_cache(disk: ET.Element, driver: ET.Element, path: str, supports: DirectIo) -> None:
    mode = driver.get("cache", "")
    if mode not in {"", "none"}:
        return
    backing = disk.find("backingStore/source")
    files = [path, *([backing.get("file") or backing.get("dev") or ""] if backing is not None else [])]
    direct = all(supports(file) for file in files if file)
    if mode == "none" and not direct:
        raise LauncherError(
            "DiskFailed", f"cache none needs direct I/O, which the file system of {path} does not have"
        )
    driver.set("cache", "none" if direct else "writethrough")


def data_path(disk: ET.Element) -> str:
    """The file or device that holds the data: under an overlay for changed blocks, the one below it."""
    source = disk.find("source")
    if source is None:
        return ""
    below = source.find("dataStore/source")
    return _name(below if below is not None else source) or _name(source)


def _name(source: ET.Element) -> str:
    return source.get("file") or source.get("dev") or ""


def _is_allocated(path: str) -> bool:
    """Tell whether writing will allocate nothing: a block device, or an image that takes all of its size.

    ``pkg/virt-launcher/virtwrap/converter/converter.go:459``
    """
    file = Path(path)
    if file.is_block_device():
        return True
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            return False
        with file.open("rb") as image:
            header = image.read(_QCOW2_SIZE.stop)
    except OSError:
        return False
    # The guest sees as many bytes as a qcow2 header says, or else as the file has.
    size = int.from_bytes(header[_QCOW2_SIZE], "big") if header.startswith(_QCOW2) else status.st_size
    return 0 < size <= status.st_blocks * 512
