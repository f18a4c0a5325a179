"""Local files in the place of container images."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from kvnode.standalone.errors import StandaloneError
from kvnode.standalone.images import ImageResolver, Images
from kvnode.standalone.manifest import Instance
from tests.standalone.helpers import disk_vmi, kernel_vmi
from tests.standalone.test_oci import DISK, Layout, layer

ROOT = {"name": "root", "containerDisk": {"image": "registry.example/disk:1"}}


def resolve(vmi: dict[str, Any], cache: Path, prefix: str = "", **images: Path) -> Images:
    """Resolve the images of a VMI; ``kernel_boot`` stands for ``kernel-boot``."""
    given = {name.replace("_", "-"): path for name, path in images.items()}
    return ImageResolver(
        Instance(vmi, {}, prefix), given, cache, "amd64", lambda _step, _text: None
    ).resolve()


def qcow2(path: Path, *arguments: str) -> Path:
    """Create an image."""
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *arguments, str(path)], check=True)
    return path


def test_a_file_is_shown_read_only_by_the_volumes_number(tmp_path: Path) -> None:
    disk = qcow2(tmp_path / "d.qcow2", "-o", "size=4M")
    vmi = disk_vmi("v", [{"name": "e", "emptyDisk": {"capacity": "1Mi"}}, ROOT])
    found = resolve(vmi, tmp_path, root=disk)
    (bind,) = found.binds
    assert (bind.source, bind.read_only) == (str(disk), True)
    assert bind.target == "/var/run/kubevirt/container-disks/disk_1.img"
    assert found.disks_info["root"]["format"] == "qcow2"
    assert found.disks_info["root"]["virtual-size"] == 4 << 20


def test_a_layout_is_taken_apart_once(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    layout.index(layout.image(layer(DISK)))
    cache = tmp_path / "cache"
    first = resolve(disk_vmi("v", [ROOT]), cache, root=layout.path)
    taken = Path(first.binds[0].source)
    assert taken.read_bytes() == b"a disk"
    stamp = taken.stat().st_mtime_ns
    again = resolve(disk_vmi("v", [ROOT]), cache, root=layout.path)
    assert again.binds == first.binds
    assert taken.stat().st_mtime_ns == stamp
    assert [entry.name for entry in cache.iterdir()] == [taken.name]


def test_a_path_in_the_image_is_honoured(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    layout.index(layout.image(layer(DISK)))
    volume = {"name": "root", "containerDisk": {"image": "i", "path": "/elsewhere/disk.img"}}
    with pytest.raises(StandaloneError, match=r"--image root: /elsewhere/disk.img is not in the image"):
        resolve(disk_vmi("v", [volume]), tmp_path / "cache", root=layout.path)


def test_an_image_must_be_given_and_wanted(tmp_path: Path) -> None:
    disk = qcow2(tmp_path / "d.qcow2", "-o", "size=4M")
    with pytest.raises(StandaloneError, match="--image root=FILE") as error:
        resolve(disk_vmi("v", [ROOT]), tmp_path, prefix="spec.template.")
    assert error.value.field == "spec.template.spec.volumes[0].containerDisk.image"
    with pytest.raises(StandaloneError, match="an image is given for 'rot', and no containerDisk"):
        resolve(disk_vmi("v", [ROOT]), tmp_path, root=disk, rot=disk)
    with pytest.raises(StandaloneError, match="neither a file nor a directory"):
        resolve(disk_vmi("v", [ROOT]), tmp_path, root=tmp_path / "absent")
    with pytest.raises(StandaloneError, match="is no OCI layout"):
        resolve(disk_vmi("v", [ROOT]), tmp_path, root=tmp_path)


def test_an_image_that_reads_other_files_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"s" * 512)
    sly = qcow2(tmp_path / "sly.qcow2", "-b", str(secret), "-F", "raw")
    with pytest.raises(StandaloneError, match="refers to another file"):
        resolve(disk_vmi("v", [ROOT]), tmp_path, root=sly)
    data = tmp_path / "data.raw"
    data.write_bytes(bytes(1 << 20))
    sly = qcow2(tmp_path / "sly2.qcow2", "-o", f"data_file={data},size=1M")
    with pytest.raises(StandaloneError, match="refers to another file"):
        resolve(disk_vmi("v", [ROOT]), tmp_path, root=sly)
    vmdk = tmp_path / "d.vmdk"
    subprocess.run(["qemu-img", "create", "-q", "-f", "vmdk", str(vmdk), "1M"], check=True)
    with pytest.raises(StandaloneError, match="the format is vmdk; raw and qcow2 are taken"):
        resolve(disk_vmi("v", [ROOT]), tmp_path, root=vmdk)


def test_kernel_files_by_path_or_by_name(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz").touch()
    (tmp_path / "initrd.gz").touch()
    vmi = kernel_vmi("v")
    vmi["spec"]["domain"]["firmware"]["kernelBoot"]["container"]["kernelPath"] = "/boot/vmlinuz"
    binds = resolve(vmi, tmp_path, kernel_boot=tmp_path).binds
    assert [(bind.source, bind.target.rpartition("/")[2]) for bind in binds] == [
        (str(tmp_path / "boot/vmlinuz"), "vmlinuz"),
        (str(tmp_path / "initrd.gz"), "initrd.gz"),
    ]


@pytest.mark.parametrize("wanted", ["/etc/passwd", "../../../../etc/passwd", "passwd", "link"])
def test_kernel_files_are_below_their_directory(tmp_path: Path, wanted: str) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    vmi = kernel_vmi("v")
    vmi["spec"]["domain"]["firmware"]["kernelBoot"]["container"]["kernelPath"] = wanted
    with pytest.raises(StandaloneError, match="is not in") as error:
        resolve(vmi, tmp_path, kernel_boot=tmp_path)
    assert error.value.field == "spec.domain.firmware.kernelBoot.container.kernelPath"


def test_a_host_disks_directory_is_shown(tmp_path: Path) -> None:
    volume = {
        "name": "d",
        "hostDisk": {"path": str(tmp_path / "d.img"), "type": "DiskOrCreate", "capacity": "1Mi"},
    }
    (bind,) = resolve(disk_vmi("v", [volume]), tmp_path).binds
    assert (bind.source, bind.read_only) == (str(tmp_path), False)
    assert bind.target == "/var/run/kubevirt-private/vmi-disks/d"


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("relative.img", "must be an absolute path"),
        ("/", "must be an absolute path"),
        ("/no/such/directory/d.img", "/no/such/directory is no directory"),
        ("/etc", "/etc is a directory"),
        ("/etc/no-such-disk", "/etc/no-such-disk does not exist, and type is Disk"),
    ],
)
def test_host_disks_that_cannot_be(tmp_path: Path, path: str, complaint: str) -> None:
    volume = {"name": "d", "hostDisk": {"path": path, "type": "Disk"}}
    with pytest.raises(StandaloneError, match=complaint) as error:
        resolve(disk_vmi("v", [volume]), tmp_path)
    assert error.value.field == "spec.volumes[0].hostDisk.path"
