"""Paths of a launcher pod, as the domain XML and KubeVirt's own tools name them."""

from __future__ import annotations

from pathlib import Path

PRIVATE = Path("/var/run/kubevirt-private")
CONTAINER_DISKS = Path("/var/run/kubevirt/container-disks")
HOTPLUG_DISKS = Path("/var/run/kubevirt/hotplug-disks")
SOCKETS = Path("/var/run/kubevirt/sockets")
EPHEMERAL = Path("/var/run/kubevirt-ephemeral-disks")
CLOUD_INIT = Path("/var/run/libvirt/cloud-init-dir")
EMPTY_DISKS = Path("/var/run/libvirt/empty-disks")
VMI_DISKS = PRIVATE / "vmi-disks"
KERNEL_BOOT = CONTAINER_DISKS / "kernel-boot"
IGNITION = Path("/var/run/libvirt/ignition-dir")
SECRETS = PRIVATE / "secret"
CONFIG_MAPS = PRIVATE / "config-map"
SYSPREPS = PRIVATE / "sysprep"
DOWNWARD_APIS = PRIVATE / "downwardapi"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CONFIG_MAP_DISKS = PRIVATE / "config-map-disks"
SECRET_DISKS = PRIVATE / "secret-disks"
SYSPREP_DISKS = PRIVATE / "sysprep-disks"
DOWNWARD_API_DISKS = PRIVATE / "downwardapi-disks"
SERVICE_ACCOUNT_DISK = PRIVATE / "service-account-disk"
DOWNWARD_METRIC_DISKS = PRIVATE / "downwardmetric-disk"
DOWNWARD_METRIC_DISK = DOWNWARD_API_DISKS / "vhostmd0"
LIBVIRT_CONFIG = Path("/etc/libvirt")
LIBVIRT_RUN = Path("/var/run/libvirt")


def container_disk(volume_index: int) -> Path:
    """Return where the image of a containerDisk appears (``pkg/container-disk/container-disk.go:104``)."""
    return CONTAINER_DISKS / f"disk_{volume_index}.img"


def overlay(volume: str) -> Path:
    """Return the writable overlay of a containerDisk or ephemeral volume (``pkg/ephemeral-disk``)."""
    return EPHEMERAL / "disk-data" / volume / "disk.qcow2"


def empty_disk(volume: str) -> Path:
    """Return the image of an emptyDisk (``pkg/emptydisk/emptydisk.go``)."""
    return EMPTY_DISKS / f"{volume}.qcow2"


def host_disk(volume: str, path: str) -> Path:
    """Return where a hostDisk's file appears (``pkg/host-disk/host-disk.go:208``)."""
    return VMI_DISKS / volume / Path(path).name


def no_cloud_iso(namespace: str, name: str) -> Path:
    """Return the NoCloud ISO that the domain names (``pkg/cloud-init/cloud-init.go:498``)."""
    return CLOUD_INIT / namespace / name / "noCloud.iso"


def config_drive_iso(namespace: str, name: str) -> Path:
    """Return the ConfigDrive ISO that the domain names (``pkg/cloud-init/cloud-init.go:501``)."""
    return CLOUD_INIT / namespace / name / "configdrive.iso"


def ignition_file(namespace: str, name: str) -> Path:
    """Return the ignition data that the domain names (``pkg/ignition/ignition.go:61``)."""
    return IGNITION / namespace / name / "data.ign"


def serial_log(uid: str) -> Path:
    """Return the log of the first serial port."""
    return PRIVATE / uid / "virt-serial0-log"


def qemu_pid_file(domain: str) -> Path:
    """Return the file in which libvirt keeps QEMU's process id."""
    return LIBVIRT_RUN / "qemu" / f"{domain}.pid"
