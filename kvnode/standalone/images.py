"""Local files in the place of container images: disks of containerDisk volumes, kernel and initrd of
kernelBoot.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvnode.standalone.errors import EXIT_ENVIRONMENT, StandaloneError
from kvnode.standalone.manifest import Instance
from kvnode.standalone.model import Progress
from kvnode.standalone.oci import OciError, OciImage, is_layout
from kvnode.standalone.sandbox import Bind

#: Name of the kernelBoot container among the images.
KERNEL_BOOT = "kernel-boot"

_CONTAINER_DISKS = "/var/run/kubevirt/container-disks"
_VMI_DISKS = "/var/run/kubevirt-private/vmi-disks"
_IMAGE_INFO_SECONDS = 30
#: What qemu-img may find in a disk that a guest boots from; other formats name further files of this machine.
_FORMATS = {"raw", "qcow2"}


@dataclass(frozen=True)
class Images:
    """What the VM is shown of this machine's files, and what is known of its disks."""

    binds: tuple[Bind, ...]
    disks_info: Mapping[str, Mapping[str, Any]]
    """Volume name to what ``qemu-img info`` says, as the converter's context takes it."""


class ImageResolver:
    """Finds the files for a VMI's container images and host disks."""

    def __init__(
        self,
        instance: Instance,
        images: Mapping[str, Path],
        cache: Path,
        architecture: str,
        progress: Progress,
    ) -> None:
        """Take ``images`` as :class:`StartOptions` has them; files taken out of OCI layouts are kept in
        ``cache``.
        """
        self._instance = instance
        self._images = dict(images)
        self._cache = cache
        self._architecture = architecture
        self._progress = progress

    def resolve(self) -> Images:
        """Return what is to be shown to the VM; raises StandaloneError naming the field or the option at
        fault.
        """
        binds: list[Bind] = []
        info: dict[str, Mapping[str, Any]] = {}
        for index, volume in enumerate(self._instance.vmi["spec"].get("volumes") or []):
            name = volume["name"]
            field = f"{self._instance.prefix}spec.volumes[{index}]"
            if volume.get("containerDisk"):
                path = self._container_disk(name, volume["containerDisk"], field)
                info[name] = _image_info(path, f"{field}.containerDisk")
                binds.append(Bind(str(path), f"{_CONTAINER_DISKS}/disk_{index}.img", read_only=True))
            elif volume.get("hostDisk"):
                binds.append(_host_disk(name, volume["hostDisk"], f"{field}.hostDisk"))
        binds += self._kernel_boot()
        unused = sorted(set(self._images) - self._wanted())
        if unused:
            raise StandaloneError(f"an image is given for {unused[0]!r}, and no containerDisk has that name")
        return Images(tuple(binds), info)

    def _wanted(self) -> set[str]:
        spec = self._instance.vmi["spec"]
        names = {volume["name"] for volume in spec.get("volumes") or [] if volume.get("containerDisk")}
        return names | ({KERNEL_BOOT} if self._kernel_container() else set())

    def _container_disk(self, name: str, source: Mapping[str, Any], field: str) -> Path:
        given = self._images.get(name)
        if given is None:
            raise StandaloneError(
                f"no registry is asked here: say --image {name}=FILE (or the directory of an OCI layout)",
                field=f"{field}.containerDisk.image",
            )
        path = given.absolute()
        if path.is_file():
            return path
        if not path.is_dir():
            raise StandaloneError(f"--image {name}: {given} is neither a file nor a directory")
        if not is_layout(path):
            raise StandaloneError(f"--image {name}: {given} is no OCI layout (there is no index.json in it)")
        return self._from_layout(name, path, str(source.get("path") or ""), "/disk")

    def _from_layout(self, name: str, layout: Path, path: str, directory: str) -> Path:
        """Return the file, taken out of the layout unless that was done before."""
        try:
            image = OciImage(layout, self._architecture)
            inside = path or image.file_in(directory)
            target = self._cache / f"{image.key(inside)}.img"
            if not target.exists():
                self._progress("image", f"taking {inside} out of {layout}")
                self._extract(image, inside, target)
        except OciError as error:
            raise StandaloneError(f"--image {name}: {error}") from None
        return target

    def _extract(self, image: OciImage, inside: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        system = os.statvfs(target.parent)
        size, free = image.size(inside), system.f_bavail * system.f_frsize
        if size > free:
            raise StandaloneError(
                f"{inside} of the image has {size} bytes, and {target.parent} has room for {free}",
                exit_code=EXIT_ENVIRONMENT,
            )
        descriptor, staging = tempfile.mkstemp(dir=target.parent, prefix=".staging-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                image.copy(inside, file)
            Path(staging).replace(target)
        except BaseException:
            Path(staging).unlink(missing_ok=True)
            raise

    def _kernel_container(self) -> Mapping[str, Any]:
        firmware = self._instance.vmi["spec"].get("domain", {}).get("firmware") or {}
        return (firmware.get("kernelBoot") or {}).get("container") or {}

    def _kernel_boot(self) -> list[Bind]:
        container = self._kernel_container()
        if not container:
            return []
        field = f"{self._instance.prefix}spec.domain.firmware.kernelBoot.container"
        given = self._images.get(KERNEL_BOOT)
        if given is None:
            raise StandaloneError(
                f"no registry is asked here: say --image {KERNEL_BOOT}=DIRECTORY of the files",
                field=f"{field}.image",
            )
        source = given.absolute()
        if not source.is_dir():
            raise StandaloneError(f"--image {KERNEL_BOOT}: {given} is no directory")
        binds = []
        for key in ("kernelPath", "initrdPath"):
            wanted = str(container.get(key) or "")
            if not wanted:
                continue
            if is_layout(source):
                file = self._from_layout(KERNEL_BOOT, source, wanted, "/")
            else:
                file = _below(source, wanted, f"{field}.{key}")
            binds.append(
                Bind(str(file), f"{_CONTAINER_DISKS}/{KERNEL_BOOT}/{Path(wanted).name}", read_only=True)
            )
        return binds


def _below(directory: Path, wanted: str, field: str) -> Path:
    """Return the file ``wanted`` of a directory, at its path or, failing that, by its name alone."""
    root = directory.resolve()
    for candidate in (root / wanted.lstrip("/"), root / Path(wanted).name):
        path = candidate.resolve()
        if path.is_relative_to(root) and path.is_file():
            return path
    raise StandaloneError(f"{wanted} is not in {directory}", field=field)


def _host_disk(name: str, source: Mapping[str, Any], field: str) -> Bind:
    """Show the directory of a hostDisk; the launcher makes the file if that is asked for."""
    path = Path(str(source.get("path", "")))
    if not path.is_absolute() or not path.name:
        raise StandaloneError("must be an absolute path of a file", field=f"{field}.path")
    if not path.parent.is_dir():
        raise StandaloneError(f"{path.parent} is no directory", field=f"{field}.path")
    if source.get("type") == "Disk" and not path.exists():
        raise StandaloneError(
            f"{path} does not exist, and type is Disk; DiskOrCreate makes it", field=f"{field}.path"
        )
    if path.is_dir():
        raise StandaloneError(f"{path} is a directory", field=f"{field}.path")
    return Bind(str(path.parent.resolve()), f"{_VMI_DISKS}/{name}", read_only=False)


def _image_info(path: Path, field: str) -> Mapping[str, Any]:
    """Return what qemu-img says of an image; raises StandaloneError for one that must not be used.

    An image that names other files (a backing file, a data file) would show the guest files of this machine.
    """
    command = ["qemu-img", "info", "-U", "--output=json", str(path)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_IMAGE_INFO_SECONDS, check=False
        )
        found = json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        found = None
    if not isinstance(found, dict):
        raise StandaloneError(f"{path}: qemu-img cannot read it as a disk image", field=field)
    if found.get("format") not in _FORMATS:
        raise StandaloneError(
            f"{path}: the format is {found.get('format')}; raw and qcow2 are taken", field=field
        )
    details = (found.get("format-specific") or {}).get("data") or {}
    if found.get("backing-filename") or found.get("full-backing-filename") or details.get("data-file"):
        raise StandaloneError(f"{path}: the image refers to another file, which is not allowed", field=field)
    keys = ("format", "virtual-size", "actual-size", "backing-filename")
    return {key: found[key] for key in keys if key in found}
