"""Cache and I/O modes by what the file system can do."""

from __future__ import annotations

import os
import subprocess
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from kvnode.launcher.disk_modes import set_disk_modes, supports_direct_io
from kvnode.launcher.errors import LauncherError
from tests.reports import report


def modes(disk: str, *, direct: set[str] | None = None) -> tuple[str | None, str | None]:
    """Cache and I/O mode of a disk; ``direct`` holds the paths that take direct I/O (None: all do)."""
    xml = set_disk_modes(
        f"<domain><devices><disk>{disk}</disk></devices></domain>",
        lambda path: direct is None or path in direct,
    )
    driver = ET.fromstring(xml).find("devices/disk/driver")
    assert driver is not None
    return driver.get("cache"), driver.get("io")


QCOW2 = "<source file='/a.qcow2'/><driver type='qcow2'/>"
BACKING = "<backingStore type='file'><format type='raw'/><source file='/b.img'/></backingStore>"


def test_an_open_mode_follows_the_file_system() -> None:
    assert modes(QCOW2) == ("none", None)
    assert modes(QCOW2, direct=set()) == ("writethrough", None)


def test_a_backing_file_counts_too() -> None:
    assert modes(QCOW2 + BACKING, direct={"/a.qcow2", "/b.img"}) == ("none", None)
    assert modes(QCOW2 + BACKING, direct={"/a.qcow2"}) == ("writethrough", None)


@pytest.mark.parametrize("cache", ["writeback", "writethrough"])
def test_a_mode_that_was_chosen_stays(cache: str) -> None:
    assert modes(f"<source file='/a'/><driver type='raw' cache='{cache}' io='threads'/>") == (
        cache,
        "threads",
    )


def test_none_where_direct_io_does_not_work_is_an_error() -> None:
    with pytest.raises(
        LauncherError, match=r"cache none needs direct I/O, which the file system of /a\.qcow2"
    ):
        modes("<source file='/a.qcow2'/><driver type='qcow2' cache='none'/>", direct=set())


def test_a_disk_that_is_allocated_gets_native_io(tmp_path: Path) -> None:
    full, sparse = tmp_path / "full.img", tmp_path / "sparse.img"
    full.write_bytes(b"x" * 65536)
    with sparse.open("wb") as file:
        file.truncate(1 << 20)
    for path, expected in ((full, "native"), (sparse, None), (tmp_path / "absent", None)):
        assert modes(f"<source file='{path}'/><driver type='raw'/>") == ("none", expected), path
    assert modes(f"<source file='{full}'/><driver type='raw' io='threads'/>") == ("none", "threads")
    assert modes(f"<source file='{full}'/><driver type='raw'/>", direct=set()) == ("writethrough", None)


@pytest.mark.parametrize(
    ("preallocation", "expected"), [("off", None), ("metadata", None), ("falloc", "native")]
)
def test_a_qcow2_image_counts_by_what_the_guest_sees(
    tmp_path: Path, preallocation: str, expected: str | None
) -> None:
    image = str(tmp_path / "a.qcow2")
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-o", f"preallocation={preallocation}", image, "8M"]
    subprocess.run(command, check=True)
    assert modes(f"<source file='{image}'/><driver type='qcow2'/>") == ("none", expected)


def test_what_is_below_an_overlay_for_changed_blocks_decides(tmp_path: Path) -> None:
    full = tmp_path / "full.img"
    full.write_bytes(b"x" * 65536)
    source = f"<source file='/over.qcow2'><dataStore type='file'><source file='{full}'/></dataStore></source>"
    assert modes(source + "<driver type='qcow2'/>", direct={str(full)}) == ("none", "native")


@report("B27")
def test_an_empty_drive_is_left_alone() -> None:
    assert modes("<driver type='raw'/>") == (None, None)


def test_a_pipe_in_the_place_of_an_image_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "disk.img")
    image = tmp_path / "disk.img"
    done: list[object] = []

    def probe() -> None:
        done.append(supports_direct_io(str(image)))
        done.append(modes(f"<source file='{image}'/><driver type='raw' cache='none'/>"))

    probing = threading.Thread(target=probe, daemon=True)
    probing.start()
    probing.join(20)
    assert done[1:] == [("none", None)]


def test_direct_io_on_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.touch()
    assert isinstance(supports_direct_io(str(file)), bool)
    assert supports_direct_io(str(tmp_path / "absent")) == supports_direct_io(str(file)), "as its directory"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]
    assert not supports_direct_io(str(tmp_path / "no/such/directory"))
    assert not supports_direct_io("/proc/self/status"), "procfs has no direct I/O"
