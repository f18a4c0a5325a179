"""Cache and I/O modes that depend on the file system: direct I/O is used where it works.

``pkg/virt-launcher/virtwrap/converter/converter.go:400-500``
"""

from __future__ import annotations

import errno
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

from kvnode.launcher.errors import LauncherError
from kvnode.launcher.log import logger

#: ``supports(path)``: whether the file or device can be opened for direct I/O.
DirectIo = Callable[[str], bool]


def supports_direct_io(path: str) -> bool:
    """Tell whether ``path`` opens with O_DIRECT; one that does not open at all does not."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC))
    except OSError as error:
        if error.errno != errno.EINVAL:
            logger.warning("direct I/O on %s: %s", path, error.strerror)
        return False
    return True


def set_disk_modes(xml: str, supports: DirectIo = supports_direct_io) -> str:
    """Fill in the modes that a domain's disks leave open; the disks' files must be there.

    A disk without a cache mode gets ``none`` where its file and that file's backing file allow direct I/O, else
    ``writethrough``. One with cache ``none``, no I/O mode and nothing left to allocate gets ``native``. Raises
    LauncherError for a disk that asks for ``none`` where direct I/O does not work.
    """
    domain = ET.fromstring(xml)  # noqa: S314 - written by the converter
    for disk in domain.iterfind("devices/disk"):
        driver, path = disk.find("driver"), _path(disk)
        if driver is None or not path:
            continue
        _set_cache(disk, driver, path, supports)
        if driver.get("cache") == "none" and not driver.get("io") and _is_allocated(path, driver):
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


def _path(disk: ET.Element) -> str:
    source = disk.find("source")
    return "" if source is None else source.get("file") or source.get("dev") or ""


def _is_allocated(path: str, driver: ET.Element) -> bool:
    """Tell whether writing will allocate nothing: a block device, or a raw file without holes."""
    file = Path(path)
    if file.is_block_device():
        return True
    try:
        status = file.stat()
    except OSError:
        return False
    return driver.get("type") == "raw" and 0 < status.st_size <= status.st_blocks * 512
