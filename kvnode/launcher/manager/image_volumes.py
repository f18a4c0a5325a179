"""Container disks and boot kernels that are image volumes of the pod, linked to where the domain looks
(``pkg/virt-launcher/virtwrap/manager.go:2747``).
"""

from __future__ import annotations

from pathlib import Path

from kvnode.launcher import paths
from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance

IMAGES = Path("/var/run/kubevirt-image-volume")
KERNELS = Path("/var/run/kubevirt-kernel-boot")
#: Where an image has its disk when the VMI names no path.
DEFAULT_DIRECTORY = "disk"


def link_image_volumes(vmi: Instance, images: Path = IMAGES, kernels: Path = KERNELS) -> None:
    """Make the links. Blocks.

    Raises:
        ManagerError: an image does not hold what is wanted of it.
    """
    for index, volume in enumerate(vmi.spec.get("volumes") or []):
        disk = volume.get("containerDisk")
        if disk:
            found = _disk(images / f"disk_{index}", str(disk.get("path") or ""), volume["name"])
            _link(paths.container_disk(index), found)
    container = ((vmi.domain.get("firmware") or {}).get("kernelBoot") or {}).get("container") or {}
    for field in ("kernelPath", "initrdPath"):
        wanted = str(container.get(field) or "")
        if wanted:
            what = f"spec.domain.firmware.kernelBoot.container.{field}"
            _link(paths.KERNEL_BOOT / Path(wanted).name, inside(kernels, wanted, what))


def _disk(root: Path, wanted: str, volume: str) -> Path:
    if wanted:
        return inside(root, wanted, f"volume {volume}: containerDisk.path")
    directory = inside(root, DEFAULT_DIRECTORY, f"volume {volume}: containerDisk")
    try:
        files = sorted(entry.name for entry in directory.iterdir())
    except OSError as error:
        raise ManagerError(f"volume {volume}: the image's /disk cannot be read: {error.strerror}") from None
    if len(files) != 1:
        raise ManagerError(f"volume {volume}: the image's /disk must hold one file, holds {len(files)}")
    return inside(root, f"{DEFAULT_DIRECTORY}/{files[0]}", f"volume {volume}: containerDisk")


def inside(root: Path, wanted: str, what: str) -> Path:
    """The file that a path inside an image means; links in the image do not lead out of it.

    Raises:
        ManagerError: there is none.
    """
    current, left, followed = root, [part for part in wanted.split("/") if part not in ("", ".")][::-1], 0
    while left:
        part = left.pop()
        if part == "..":
            current = current.parent if current != root else root
            continue
        step = current / part
        try:
            if step.is_symlink():
                followed += 1
                target = str(step.readlink())
                if followed > 40:
                    raise ManagerError(f"{what}: too many links on the way to {wanted}")
                if target.startswith("/"):
                    current = root
                left += [other for other in target.split("/") if other not in ("", ".")][::-1]
                continue
            if not step.exists():
                raise ManagerError(f"{what}: {wanted} is not in the image")
        except OSError as error:
            raise ManagerError(f"{what}: {wanted}: {error.strerror}") from None
        current = step
    return current


def _link(link: Path, target: Path) -> None:
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink() and not link.exists():
            link.symlink_to(target)
    except OSError as error:
        raise ManagerError(f"{link}: the link cannot be made: {error.strerror}") from None
