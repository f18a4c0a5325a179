"""Images of container disks and boot files, mounted into the launcher.

Where the launcher's pod has them as image volumes, the launcher finds them itself and nothing is to be done. Where
they are held by containers beside it, each is known by its socket; the image is mounted from that container's root
over a file of the launcher's (``pkg/virt-handler/container-disk/mount.go``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from kvnode.agent import mounts
from kvnode.agent.errors import FAILURES, AgentError
from kvnode.agent.parts import Clock
from kvnode.agent.peers import Peer, peer_of
from kvnode.agent.rootfs import names_in_root, opened, path_of
from kvnode.agent.runtime import Place
from kvnode.agent.sockets import Pinned, is_socket
from kvnode.agent.status.checksums import INITRD, KERNEL
from kvnode.agent.vmi import Vmi, spec, status, uid_of, volumes
from kvnode.spec.config import ClusterConfig
from kvnode.spec.pod.paths import CONTAINER_DISKS_DIR

PATIENCE = timedelta(minutes=1)
"""How long a container may take until its image can be mounted."""

BINARIES = "containers/container-disk-binary"
"""In a pod's folder: whether it was made for containers that hold images."""

_FOLDER = "volumes/kubernetes.io~empty-dir/container-disks"
_DEFAULT = "disk"
_BOOT = "kernel-boot"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Image:
    """A file that one of the containers holds."""

    name: str
    """As `status.checksums` calls it."""
    socket: str
    wanted: str
    """Path in the container; "": the one file of its folder for disks."""
    target: str
    """Path of the launcher's, below its folder of container disks."""


def images_of(vmi: Vmi) -> list[Image]:
    """All that the VM needs, in the order of the VMI."""
    found = []
    for index, volume in enumerate(volumes(vmi)):
        if (disk := volume.get("containerDisk")) is not None:
            wanted = str(disk.get("path") or "")
            found.append(Image(str(volume.get("name")), f"disk_{index}.sock", wanted, f"disk_{index}.img"))
    firmware = (spec(vmi).get("domain") or {}).get("firmware") or {}
    container = (firmware.get("kernelBoot") or {}).get("container") or {}
    if container.get("image"):
        for name, field in ((KERNEL, "kernelPath"), (INITRD, "initrdPath")):
            if wanted := str(container.get(field) or ""):
                found.append(Image(name, f"{_BOOT}.sock", wanted, f"{_BOOT}/{Path(wanted).name}"))
    return found


class ContainerDisks:
    """Those of this node."""

    def __init__(
        self,
        pods_folder: Path,
        place_of: Callable[[Vmi], Awaitable[Place]],
        config: Callable[[], ClusterConfig],
        clock: Clock,
        root_of: Callable[[Peer], Path] = lambda peer: peer.root,
    ) -> None:
        """`place_of` finds a VMI's launcher; `root_of` the root file system of a container, by its process."""
        self._pods = pods_folder
        self._place_of = place_of
        self._config = config
        self._clock = clock
        self._root_of = root_of
        self._mounted: dict[str, set[str]] = {}

    async def ready(self, vmi: Vmi, since: datetime) -> bool:
        """Whether the containers that hold them run; AgentError when that takes too long."""
        if not self._needs_mounts(vmi):
            return True
        for image in images_of(vmi):
            try:
                await self._holder(vmi, image)
            except FAILURES as error:
                if self._clock.now() - since > PATIENCE:
                    raise AgentError(
                        f"container disk {image.name}: its container is not ready after a minute: {error}"
                    ) from error
                return False
        return True

    async def mount(self, vmi: Vmi) -> None:
        """Mount and check them; what is mounted already stays."""
        if not self._needs_mounts(vmi):
            return
        place = await self._place_of(vmi)
        for image in images_of(vmi):
            holder = await self._holder(vmi, image)
            try:
                await asyncio.to_thread(self._mount, image, holder, place)
            except OSError as error:
                raise AgentError(
                    f"container disk {image.name}: cannot be mounted: {error.strerror or error}"
                ) from error
            self._mounted.setdefault(uid_of(vmi), set()).add(image.target)

    async def unmount(self, vmi: Vmi) -> None:
        """Take them away again. With the launcher's namespace they are gone by themselves."""
        targets = self._mounted.pop(uid_of(vmi), set())
        if not targets:
            return
        try:
            place = await self._place_of(vmi)
        except FAILURES:
            return
        for target in sorted(targets):
            with contextlib.suppress(OSError):
                await asyncio.to_thread(_unmount, place, target)

    async def checksums(self, vmi: Vmi) -> Mapping[str, int] | None:
        """CRC-32 of each; None when a container is not there (any more)."""
        found: dict[str, int] = {}
        for image in images_of(vmi):
            try:
                holder = await self._holder(vmi, image)
                found[image.name] = await asyncio.to_thread(self._checksum, image, holder)
            except FAILURES:
                return None
        return found

    def _needs_mounts(self, vmi: Vmi) -> bool:
        if not images_of(vmi):
            return False
        if not self._config().gate("ImageVolume"):
            return True
        # A pod that was made before the gate was on has containers all the same.
        return any((self._pods / pod / BINARIES).exists() for pod in self._pod_uids(vmi))

    def _pod_uids(self, vmi: Vmi) -> list[str]:
        pods: Mapping[str, str] = status(vmi).get("activePods") or {}
        return [pod for pod in pods if pod not in ("", ".", "..") and "/" not in pod and "\0" not in pod]

    async def _holder(self, vmi: Vmi, image: Image) -> Peer:
        """The process of the container that holds an image; raises AgentError."""
        sockets = [self._pods / pod / _FOLDER / image.socket for pod in self._pod_uids(vmi)]
        found = [socket for socket in sockets if is_socket(socket)]
        if len(found) != 1:
            raise AgentError(f"{image.socket}: is there in {len(found)} of the VM's pods, must be in one")
        with Pinned(found[0]) as socket:
            return await peer_of(socket.path, shown=found[0])

    def _mount(self, image: Image, holder: Peer, place: Place) -> None:
        with _target(place.root, image.target) as target:
            with _seen(place.root, image.target) as (now, folder):
                if mounts.mount_id(now) != mounts.mount_id(folder):
                    return
            with self._source(image, holder) as source:
                mounts.bind(source, holder.proc, target, place.proc)

    @contextlib.contextmanager
    def _source(self, image: Image, holder: Peer, flags: int = os.O_PATH) -> Iterator[int]:
        root = self._root_of(holder)
        wanted = image.wanted
        if not wanted:
            names = names_in_root(root, _DEFAULT)
            if len(names) != 1:
                raise AgentError(
                    f"container disk {image.name}: the image's /{_DEFAULT} must hold one file, holds {len(names)}"
                )
            wanted = f"{_DEFAULT}/{names[0]}"
        with opened(root, wanted, flags) as file:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise AgentError(f"container disk {image.name}: the image's /{wanted.lstrip('/')} is no file")
            yield file

    def _checksum(self, image: Image, holder: Peer) -> int:
        total = 0
        # Not to hang in a pipe that someone put there.
        with self._source(image, holder, os.O_RDONLY | os.O_NONBLOCK) as file:
            while data := os.read(file, _CHUNK):
                total = zlib.crc32(data, total)
        return total


@contextlib.contextmanager
def _target(root: Path, target: str) -> Iterator[int]:
    """The file of the launcher's that an image is mounted over, made where it is missing."""
    *folders, name = target.split("/")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(opened(root, CONTAINER_DISKS_DIR, os.O_RDONLY | os.O_DIRECTORY))
        for one in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(one, 0o755, dir_fd=folder)
            folder = os.open(one, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            stack.callback(os.close, folder)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(FileExistsError):
            os.close(os.open(name, flags, 0o644, dir_fd=folder))
        file = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        stack.callback(os.close, file)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise AgentError(
                f"the launcher's {CONTAINER_DISKS_DIR}/{target}: is no file to mount an image over"
            )
        yield file


@contextlib.contextmanager
def _seen(root: Path, target: str) -> Iterator[tuple[int, int]]:
    """What is on top at ``target``, and the folder of container disks: links lead to the folder (``/var/run`` is one
    in most images), and none in it.
    """
    with (
        opened(root, CONTAINER_DISKS_DIR) as folder,
        opened(path_of(folder), target, follow=False) as top,
    ):
        yield top, folder


def _unmount(place: Place, target: str) -> None:
    with _seen(place.root, target) as (top, folder):
        if mounts.mount_id(top) == mounts.mount_id(folder):
            return
        parent, _, name = target.rpartition("/")
        with opened(path_of(folder), parent or ".", follow=False) as at:
            mounts.unmount(at, name, place.proc)
