"""Container disks, really mounted from one container into another; needs root."""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kvnode.agent.containerdisks import ContainerDisks, images_of
from kvnode.agent.errors import AgentError
from kvnode.agent.status.checksums import INITRD, KERNEL
from kvnode.spec.config import ClusterConfig
from tests.agent.build import NOW, vmi
from tests.agent.container import Container, container
from tests.kube.loops import real_time

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root"),
]

DISKS = "var/run/kubevirt/container-disks"
FOLDER = "pod-1/volumes/kubernetes.io~empty-dir/container-disks"
IMAGE = b"image" * 1000
CLASSIC = ClusterConfig.from_mapping({"developerConfiguration": {"disabledFeatureGates": ["ImageVolume"]}})
IMAGE_VOLUMES = ClusterConfig.from_mapping({"developerConfiguration": {"featureGates": ["ImageVolume"]}})


class Clock:
    """Stands still."""

    def now(self) -> Any:
        return NOW


class Pod:
    """A launcher and containers with images beside it."""

    def __init__(self, folder: Path, launcher: Container) -> None:
        self.folder, self.launcher = folder, launcher
        self.config = CLASSIC
        self.disks = ContainerDisks(folder / "pods", self._place, lambda: self.config, Clock())

    async def _place(self, _vmi: object) -> Container:
        return self.launcher

    def socket(self, name: str) -> Path:
        return self.folder / "pods" / FOLDER / name

    def image(self, name: str) -> Path:
        """A container's root, where its disk is."""
        root = self.folder / name
        (root / "disk").mkdir(parents=True)
        return root

    def inside(self, name: str) -> bytes:
        """A file of the launcher's, as the launcher has it."""
        return (self.launcher.root / DISKS / name).read_bytes()

    def outside(self, name: str) -> bytes:
        """The same, as the node has it."""
        return (self.folder / "launcher" / DISKS / name).read_bytes()


@pytest.fixture
def pod() -> Iterator[Pod]:
    folder = Path(tempfile.mkdtemp(prefix="kv"))
    # As in most images.
    (folder / "launcher/var").mkdir(parents=True)
    (folder / "launcher/var/run").symlink_to("../run")
    (folder / "launcher/run/kubevirt/container-disks").mkdir(parents=True)
    with container(folder / "launcher", folder / "l.sock") as launcher:
        yield Pod(folder, launcher)
    shutil.rmtree(folder)


def with_disk(path: str = "") -> dict[str, Any]:
    return vmi("Scheduled", spec={"volumes": [{"name": "root", "containerDisk": {"path": path}}]})


@real_time
async def test_an_image_is_seen_by_the_launcher_alone_and_cannot_be_written(pod: Pod) -> None:
    (pod.image("image") / "disk/any.qcow2").write_bytes(IMAGE)
    with container(pod.folder / "image", pod.socket("disk_0.sock")):
        assert await pod.disks.ready(with_disk(), NOW)
        for _ in range(2):  # once more does nothing
            await pod.disks.mount(with_disk())
        assert pod.inside("disk_0.img") == IMAGE
        assert pod.outside("disk_0.img") == b""
        with pytest.raises(OSError, match="Read-only"):
            (pod.launcher.root / DISKS / "disk_0.img").write_bytes(b"x")
        assert await pod.disks.checksums(with_disk()) == {"root": zlib.crc32(IMAGE)}
        await pod.disks.unmount(with_disk())
        assert pod.inside("disk_0.img") == b""


@real_time
async def test_boot_files_and_a_path_of_its_own(pod: Pod) -> None:
    boot = {"container": {"image": "x", "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}}
    machine = vmi("Scheduled", spec={"domain": {"firmware": {"kernelBoot": boot}}})
    assert [one.name for one in images_of(machine)] == [KERNEL, INITRD]
    root = pod.image("image")
    (root / "boot").mkdir()
    (root / "boot/vmlinuz").write_bytes(b"kernel")
    (root / "boot/initrd").write_bytes(b"initrd")
    with container(root, pod.socket("kernel-boot.sock")):
        await pod.disks.mount(machine)
        assert pod.inside("kernel-boot/vmlinuz") == b"kernel"
        assert pod.inside("kernel-boot/initrd") == b"initrd"
        assert await pod.disks.checksums(machine) == {
            KERNEL: zlib.crc32(b"kernel"),
            INITRD: zlib.crc32(b"initrd"),
        }


@real_time
async def test_links_lead_out_of_neither_root(pod: Pod) -> None:
    secret = pod.folder / "secret"
    secret.write_text("secret")
    root = pod.image("image")
    (root / "disk/disk.img").symlink_to(f"/../../..{secret}")
    with container(root, pod.socket("disk_0.sock")):
        with pytest.raises(AgentError, match="root: cannot be mounted: No such file"):
            await pod.disks.mount(with_disk())
        (root / "disk/disk.img").unlink()
        (root / "disk/disk.img").write_bytes(IMAGE)
        target = pod.folder / "launcher" / DISKS / "disk_0.img"
        target.unlink(missing_ok=True)
        target.symlink_to(secret)
        with pytest.raises(AgentError, match="is no file to mount an image over"):
            await pod.disks.mount(with_disk())
    assert secret.read_text() == "secret"


@real_time
async def test_what_is_no_disk_image_is_refused(pod: Pod) -> None:
    root = pod.image("image")
    with container(root, pod.socket("disk_0.sock")):
        with pytest.raises(AgentError, match="must hold one file, holds 0"):
            await pod.disks.mount(with_disk())
        os.mkfifo(root / "disk/pipe")
        with pytest.raises(AgentError, match="is no file"):
            await pod.disks.mount(with_disk())


@real_time
async def test_a_container_that_is_late_is_waited_for_and_then_given_up(pod: Pod) -> None:
    assert not await pod.disks.ready(with_disk(), NOW - timedelta(seconds=50))
    with pytest.raises(AgentError, match="not ready after a minute"):
        await pod.disks.ready(with_disk(), NOW - timedelta(seconds=61))
    assert await pod.disks.checksums(with_disk()) is None


@real_time
async def test_image_volumes_need_nothing_but_pods_made_before_them_do(pod: Pod) -> None:
    pod.config = IMAGE_VOLUMES
    assert await pod.disks.ready(with_disk(), NOW)
    await pod.disks.mount(with_disk())
    assert not list((pod.folder / "launcher" / DISKS).iterdir())
    (pod.folder / "pods/pod-1/containers/container-disk-binary").mkdir(parents=True)
    assert not await pod.disks.ready(with_disk(), NOW)
