"""The claim that keeps a VM's own state between pods (``rendervolumes.go:386``, ``pkg/storage/backend-storage``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvnode.api.errors import FieldError
from kvnode.spec.pod import paths
from kvnode.spec.pod.source import PodSource

if TYPE_CHECKING:
    from kvnode.spec.pod.volumes import PodVolumes

VOLUME = "vm-state"
_META_DIR = "/run/kubevirt-private/backend-storage-meta"
_LIBVIRT_DIR = paths.PRIVATE_DIR + "/libvirt"
_QEMU_DIR = _LIBVIRT_DIR + "/qemu"


def has_persistent_tpm(source: PodSource) -> bool:
    """Whether the TPM keeps its state."""
    tpm = source.devices.get("tpm")
    return tpm is not None and tpm.get("enabled", True) and tpm.get("persistent", False)


def has_persistent_efi(source: PodSource) -> bool:
    """Whether the firmware keeps its variables."""
    efi = source.domain.get("firmware", {}).get("bootloader", {}).get("efi", {})
    return bool(efi.get("persistent", False))


def tracks_changed_blocks(source: PodSource) -> bool:
    """Whether changed blocks are tracked, or are about to be."""
    return source.status.get("changedBlockTracking", {}).get("state") in ("Initializing", "Enabled")


def needs_backend_storage(source: PodSource) -> bool:
    """Whether the VM has state that must outlive its pod."""
    return has_persistent_tpm(source) or has_persistent_efi(source) or tracks_changed_blocks(source)


def mount_backend_storage(made: PodVolumes, source: PodSource) -> None:
    """Mount the claim's parts where libvirt has the state.

    Raises:
        FieldError: the claim is needed, and not there.
    """
    if not needs_backend_storage(source):
        return
    claim = source.surroundings.backend_storage_claim
    if not claim:
        raise FieldError(_reason(source), "needs a claim for state that outlives the pod: none is there yet")
    made.add(VOLUME, {"persistentVolumeClaim": {"claimName": claim}})
    made.mount(VOLUME, _META_DIR, subPath="meta")
    if source.non_root:
        # The kubelet would make these directories for root alone.
        made.add("private-libvirt", {"emptyDir": {}})
        made.add("private-libvirt-qemu", {"emptyDir": {}})
        made.mount("private-libvirt", _LIBVIRT_DIR)
        made.mount("private-libvirt-qemu", _QEMU_DIR)
    if has_persistent_tpm(source):
        made.mount(VOLUME, _state_dir(source, "swtpm", "/var/lib/libvirt"), subPath="swtpm")
        authority = (
            paths.PRIVATE_DIR + "/var/lib/swtpm-localca" if source.non_root else "/var/lib/swtpm-localca"
        )
        made.mount(VOLUME, authority, subPath="swtpm-localca")
    if has_persistent_efi(source):
        made.mount(VOLUME, _state_dir(source, "nvram"), subPath="nvram")
    if tracks_changed_blocks(source):
        made.mount(VOLUME, _state_dir(source, "cbt"), subPath="cbt")


def _state_dir(source: PodSource, name: str, root_dir: str = "/var/lib/libvirt/qemu") -> str:
    return f"{_QEMU_DIR if source.non_root else root_dir}/{name}"


def _reason(source: PodSource) -> str:
    if has_persistent_tpm(source):
        return "spec.domain.devices.tpm.persistent"
    if has_persistent_efi(source):
        return "spec.domain.firmware.bootloader.efi.persistent"
    return "status.changedBlockTracking.state"
