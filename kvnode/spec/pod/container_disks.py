"""Containers that bring container disks and kernels into the pod (``pkg/container-disk/container-disk.go``).

With image volumes there is one init container for each image: it ends at once, and its status tells the digest.
Without them, a container of the image itself hands the disk over through a shared directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kvnode.spec.pod import paths
from kvnode.spec.pod.compute import TERMINATION_MESSAGE_POLICY, user_environment
from kvnode.spec.pod.security import powerless_context, user_context
from kvnode.spec.pod.source import PodSource
from kvnode.spec.pod.support import CONTAINER_DISK, support_resources
from kvnode.spec.pod.volumes import CONTAINER_DISKS, KERNEL_BOOT_VOLUME, LAUNCHER_VOLUME, VIRT_BIN, is_pinned

_BINARY = "/usr/bin/container-disk"


@dataclass(frozen=True, slots=True)
class _Image:
    volume: str
    reference: str
    pull_policy: str
    target: str
    """Name of the directory that the disk is handed over in."""


def image_init_containers(source: PodSource) -> list[dict[str, Any]]:
    """The init containers of images: the launcher's binary for them first, where it is not a volume."""
    images = list(_images(source))
    if source.image_volumes:
        unpinned = [i for i in images if not is_pinned(source.surroundings.image_ids.get(i.volume, ""))]
        return [_digest_container(source, image) for image in unpinned]
    if not images:
        return []
    return [_binary_container(source), *(_image_container(source, image, init=True) for image in images)]


def image_containers(source: PodSource) -> list[dict[str, Any]]:
    """The containers that hold images open as long as the pod runs."""
    if source.image_volumes:
        return []
    return [_image_container(source, image, init=False) for image in _images(source)]


def pull_secrets(source: PodSource) -> list[dict[str, str]]:
    """Secrets for pulling images, each once (``template.go:415``)."""
    images = [volume["containerDisk"] for volume in source.volumes if "containerDisk" in volume]
    images += [] if source.kernel_boot is None else [source.kernel_boot]
    names = [image.get("imagePullSecret", "") for image in images] + [source.settings.image_pull_secret]
    return [{"name": name} for name in dict.fromkeys(names) if name]


def _images(source: PodSource) -> Iterator[_Image]:
    for index, volume in enumerate(source.volumes):
        name = volume.get("name", "")
        # Without image volumes, a disk of the kernel's name would collide with the kernel's container.
        if "containerDisk" in volume and (source.image_volumes or name != KERNEL_BOOT_VOLUME):
            yield _image(source, name, volume["containerDisk"], f"disk_{index}")
    if source.kernel_boot is not None:
        yield _image(source, KERNEL_BOOT_VOLUME, source.kernel_boot, "kernel-boot")


def _image(source: PodSource, volume: str, image: Mapping[str, Any], target: str) -> _Image:
    written = image.get("image", "")
    reference = written if source.image_volumes else source.surroundings.image_ids.get(volume, written)
    return _Image(volume, reference, image.get("imagePullPolicy", ""), target)


def _resources(source: PodSource) -> dict[str, dict[str, str]]:
    resources = support_resources(
        source.config,
        CONTAINER_DISK,
        requests={"cpu": "1m", "memory": "1M"},
        limits={"cpu": "10m", "memory": "40M"},
        guaranteed=source.guaranteed,
    )
    resources["requests"]["ephemeral-storage"] = "50M"
    return resources


def _container(source: PodSource, image: _Image) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": f"volume{image.volume}",
        "image": image.reference,
        "resources": _resources(source),
        "securityContext": powerless_context(),
    }
    # Without a policy, Kubernetes' own rule for the image's tag holds.
    return made | ({"imagePullPolicy": image.pull_policy} if image.pull_policy else {})


def _digest_container(source: PodSource, image: _Image) -> dict[str, Any]:
    mount = {"name": LAUNCHER_VOLUME, "mountPath": paths.CONTAINER_BINARY_DIR, "readOnly": True}
    return {
        **_container(source, image),
        "command": [paths.CONTAINER_BINARY_DIR + _BINARY],
        "args": ["--no-op"],
        "volumeMounts": [mount],
    }


def _image_container(source: PodSource, image: _Image, *, init: bool) -> dict[str, Any]:
    directory = paths.join(paths.CONTAINER_DISKS_DIR, source.uid)
    made = {
        **_container(source, image),
        "command": [_BINARY],
        "args": ["--no-op"] if init else ["--copy-path", paths.join(directory, image.target)],
        "volumeMounts": [
            {"name": CONTAINER_DISKS, "mountPath": directory},
            {"name": VIRT_BIN, "mountPath": "/usr/bin"},
        ],
    }
    return made | {"name": made["name"] + "-init"} if init else made


def _binary_container(source: PodSource) -> dict[str, Any]:
    """Copies the launcher's helper to where the images' containers find it (``template.go:642-661``)."""
    guaranteed = source.guaranteed
    limits = {"cpu": "10m" if guaranteed else "100m", "memory": "40M"}
    return {
        "name": "container-disk-binary",
        "image": source.settings.launcher_image,
        "imagePullPolicy": source.config.image_pull_policy,
        "command": ["/usr/bin/cp", "--preserve=all", _BINARY, "/init" + _BINARY],
        "env": user_environment(source.user),
        "resources": support_resources(
            source.config,
            CONTAINER_DISK,
            requests={"cpu": "10m", "memory": "1M"},
            limits=limits,
            guaranteed=guaranteed,
        ),
        "securityContext": {**user_context(source.user), "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "volumeMounts": [{"name": VIRT_BIN, "mountPath": "/init/usr/bin"}],
    }
