"""Directories inside a launcher pod (``pkg/util/util.go``, ``pkg/config/config.go``)."""

from __future__ import annotations

import posixpath

PRIVATE_DIR = "/var/run/kubevirt-private"
SHARE_DIR = "/var/run/kubevirt"
IMAGE_VOLUME_DIR = "/var/run/kubevirt-image-volume"
KERNEL_BOOT_DIR = "/var/run/kubevirt-kernel-boot"
CONTAINER_BINARY_DIR = "/container-disk-binary"
CONTAINER_DISKS_DIR = SHARE_DIR + "/container-disks"
VIRTIOFS_DIR = SHARE_DIR + "/virtiofs-containers"
HOOKS_DIR = "/var/run/kubevirt-hooks"
PLUGIN_SOCKETS_DIR = "/var/run/kubevirt-plugin"
DISKS_DIR = PRIVATE_DIR + "/vmi-disks"
CONFIG_MAP_DIR = PRIVATE_DIR + "/config-map"
SECRET_DIR = PRIVATE_DIR + "/secret"
DOWNWARD_API_DIR = PRIVATE_DIR + "/downwardapi"
SYSPREP_DIR = PRIVATE_DIR + "/sysprep"
DOWNWARD_METRICS_DIR = PRIVATE_DIR + "/downwardmetric-disk"
SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount/"


def join(*parts: str) -> str:
    """A path of its parts, without empty, ``.`` and ``..`` elements, however the parts are written."""
    return clean("/".join(part for part in parts if part))


def directory(path: str) -> str:
    """The directory that a path lies in; ``.`` for a bare name."""
    return clean(path[: path.rfind("/") + 1])


def clean(path: str) -> str:
    """The shortest way to write a path."""
    cleaned = posixpath.normpath(path)
    return cleaned[1:] if cleaned.startswith("//") else cleaned
