"""A pod's volumes, and where the compute container finds them (``rendervolumes.go``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.spec.pod import paths
from kvnode.spec.pod.backend_storage import mount_backend_storage
from kvnode.spec.pod.networks import wants_device_info
from kvnode.spec.pod.settings import Claim, ClaimNotFoundError
from kvnode.spec.pod.source import PodSource

CONTAINER_DISKS = "container-disks"
HOTPLUG_DISKS = "hotplug-disks"
HOOK_SOCKETS = "hook-sidecar-sockets"
KERNEL_BOOT_VOLUME = "kernel-boot-volume"
LAUNCHER_VOLUME = "launcher-volume"
NETWORK_INFO = "network-info-annotation"
NETWORK_INFO_DIR = "/etc/podinfo"
VIRT_BIN = "virt-bin-share-dir"
VIRTIOFS = "virtiofs-containers"

_HOST_PATH_TYPES = {"Disk": "Directory", "DiskOrCreate": "DirectoryOrCreate"}
_CLOUD_INIT_KINDS = ("cloudInitNoCloud", "cloudInitConfigDrive")
_CONFIG_DIRS = {
    "secret": paths.SECRET_DIR,
    "configMap": paths.CONFIG_MAP_DIR,
    "downwardAPI": paths.DOWNWARD_API_DIR,
}


@dataclass(slots=True)
class PodVolumes:
    """Volumes of the pod, with the mounts and devices of its compute container."""

    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    devices: list[dict[str, Any]] = field(default_factory=list)
    shared_paths: list[str] = field(default_factory=list)
    """Mounts that several nodes may write to."""

    def add(self, name: str, source: Mapping[str, Any]) -> None:
        """Add a volume; `source` is its kind with its settings."""
        self.volumes.append({"name": name, **source})

    def mount(self, name: str, path: str, **settings: Any) -> None:
        """Mount a volume in the compute container."""
        self.mounts.append({"name": name, "mountPath": path, **settings})


def pod_volumes(source: PodSource) -> PodVolumes:
    """All volumes, in the order of ``template.go:968-1016``.

    Raises:
        ClaimNotFoundError: a claim is not there.
        FieldError: a volume has no source that a pod could have.
    """
    made = PodVolumes()
    _base(made, source)
    _configuration(made, source)
    _of_instance(made, source)
    _access_credentials(made, source)
    mount_backend_storage(made, source)
    if source.image_volumes:
        _images(made, source)
    if source.sidecars:
        made.add(HOOK_SOCKETS, {"emptyDir": {}})
        made.mount(HOOK_SOCKETS, paths.HOOKS_DIR)
    if source.config.gate("Plugins"):
        made.add("kubevirt-plugin-sockets", {"emptyDir": {}})
        made.mount("kubevirt-plugin-sockets", paths.PLUGIN_SOCKETS_DIR)
    _memory_and_hotplug(made, source)
    if wants_device_info(source):
        _network_info(made)
    if any("virtiofs" in filesystem for filesystem in source.devices.get("filesystems", ())):
        made.add(VIRTIOFS, {"emptyDir": {}})
        made.mount(VIRTIOFS, paths.VIRTIOFS_DIR)
    return made


def secret_source(name: str) -> dict[str, Any]:
    """A volume of a secret's keys."""
    return {"secret": {"secretName": name}}


def is_hotplugged(volume: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a pod of its own attaches the volume (``rendervolumes.go:329``)."""
    if "hotplugVolume" in statuses.get(volume.get("name", ""), ()):
        return True
    return any(
        volume.get(kind, {}).get("hotpluggable", False) for kind in ("dataVolume", "persistentVolumeClaim")
    )


def claim_fields(volume: Mapping[str, Any]) -> tuple[str, str] | None:
    """The claim that a volume lies on and the field that names it; None: it lies on none."""
    if "persistentVolumeClaim" in volume:
        return volume["persistentVolumeClaim"].get("claimName", ""), "persistentVolumeClaim.claimName"
    if "dataVolume" in volume:
        return volume["dataVolume"].get("name", ""), "dataVolume.name"
    inner = volume.get("ephemeral", {}).get("persistentVolumeClaim")
    if inner is not None:
        return inner.get("claimName", ""), "ephemeral.persistentVolumeClaim.claimName"
    return None


def _base(made: PodVolumes, source: PodSource) -> None:
    settings = source.settings
    names = ["private", "public", "sockets", VIRT_BIN, "libvirt-runtime", "ephemeral-disks"]
    for name in names if source.image_volumes else [*names, CONTAINER_DISKS]:
        made.add(name, {"emptyDir": {}})
    made.mount("private", paths.PRIVATE_DIR)
    made.mount("public", paths.SHARE_DIR)
    made.mount("ephemeral-disks", settings.ephemeral_disk_dir)
    made.mount("libvirt-runtime", "/var/run/libvirt")
    made.mount("sockets", paths.join(settings.share_dir, "sockets"))
    if not source.image_volumes:
        made.mount(CONTAINER_DISKS, settings.container_disk_dir, mountPropagation="HostToContainer")


def _configuration(made: PodVolumes, source: PodSource) -> None:
    """Secrets, config maps and the pod's own metadata: volumes in any case, mounts where a disk shows them."""
    by_name = {}
    for volume in source.volumes:
        name = volume.get("name", "")
        by_name[name] = volume
        if "secret" in volume:
            made.add(name, {"secret": _chosen(volume["secret"], "secretName", "optional")})
        if "configMap" in volume:
            made.add(name, {"configMap": _chosen(volume["configMap"], "name", "optional")})
        if "downwardAPI" in volume:
            made.add(name, {"downwardAPI": {"items": volume["downwardAPI"].get("fields", [])}})
    for disk in source.devices.get("disks", ()):
        name = disk.get("name", "")
        for kind, directory in _CONFIG_DIRS.items():
            if kind in by_name.get(name, ()):
                made.mount(name, paths.join(directory, name), readOnly=True)


def _of_instance(made: PodVolumes, source: PodSource) -> None:
    """The volumes of the VMI that are there from the start, and not by an image."""
    statuses = {status.get("name", ""): status for status in source.status.get("volumeStatus", ())}
    for index, volume in enumerate(source.volumes):
        if is_hotplugged(volume, statuses):
            continue
        name, path = volume.get("name", ""), f"spec.volumes[{index}]"
        claim = claim_fields(volume)
        if claim is not None:
            _mount_claim(made, source, name, claim[0], f"{path}.{claim[1]}")
            made.add(name, {"persistentVolumeClaim": _claim_source(volume, claim[0])})
        if "hostDisk" in volume:
            _host_disk(made, name, volume["hostDisk"])
        if "downwardMetrics" in volume:
            made.add(name, {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
            made.mount(name, paths.DOWNWARD_METRICS_DIR)
        for kind in _CLOUD_INIT_KINDS:
            _cloud_init_secrets(made, name, volume.get(kind, {}))
        if "sysprep" in volume:
            made.add(name, _sysprep_source(volume["sysprep"], path))
            made.mount(name, paths.join(paths.SYSPREP_DIR, name), readOnly=True)


def _claim_source(volume: Mapping[str, Any], claim: str) -> dict[str, Any]:
    inner = volume.get("persistentVolumeClaim") or volume.get("ephemeral", {}).get(
        "persistentVolumeClaim", {}
    )
    return {"claimName": claim, **({"readOnly": True} if inner.get("readOnly", False) else {})}


def _mount_claim(made: PodVolumes, source: PodSource, volume: str, claim: str, path: str) -> None:
    known = Claim(block=False) if source.claims is None else source.claims.get(claim)
    if known is None:
        raise ClaimNotFoundError(path, claim)
    if known.block:
        made.devices.append({"name": volume, "devicePath": paths.join("/dev", volume)})
        return
    directory = paths.join(paths.DISKS_DIR, volume)
    made.mount(volume, directory)
    if known.shared:
        made.shared_paths.append(directory)


def _host_disk(made: PodVolumes, name: str, disk: Mapping[str, Any]) -> None:
    kind = _HOST_PATH_TYPES.get(disk.get("type", ""), "")
    made.mount(name, paths.join(paths.DISKS_DIR, name))
    made.add(name, {"hostPath": {"path": paths.directory(disk.get("path", "")), "type": kind}})


def _cloud_init_secrets(made: PodVolumes, name: str, cloud_init: Mapping[str, Any]) -> None:
    """User and network data out of secrets, whose keys are read in either spelling."""
    for reference, suffix, keys in (
        ("secretRef", "udata", ("userdata", "userData")),
        ("networkDataSecretRef", "ndata", ("networkdata", "networkData")),
    ):
        if reference not in cloud_init:
            continue
        volume = f"{name}-{suffix}"
        made.add(volume, secret_source(cloud_init[reference].get("name", "")))
        for key in keys:
            made.mount(volume, paths.join(paths.SECRET_DIR, name, key), subPath=key, readOnly=True)


def _sysprep_source(sysprep: Mapping[str, Any], path: str) -> dict[str, Any]:
    if "secret" in sysprep:
        return secret_source(sysprep["secret"].get("name", ""))
    if "configMap" in sysprep:
        return {"configMap": {"name": sysprep["configMap"].get("name", "")}}
    raise FieldError(f"{path}.sysprep", "must name a secret or a configMap")


def _access_credentials(made: PodVolumes, source: PodSource) -> None:
    for credential in source.spec.get("accessCredentials", ()):
        for name in _credential_secrets(credential):
            volume = f"{name}-access-cred"
            made.add(volume, secret_source(name))
            made.mount(volume, paths.join(paths.SECRET_DIR, volume), readOnly=True)


def _credential_secrets(credential: Mapping[str, Any]) -> Iterator[str]:
    """The secret of a credential: an SSH key's before a password's."""
    for kind in ("sshPublicKey", "userPassword"):
        secret = credential.get(kind, {}).get("source", {}).get("secret")
        if secret is not None:
            if secret.get("secretName"):
                yield secret["secretName"]
            return


def _images(made: PodVolumes, source: PodSource) -> None:
    """Container disks and kernels as volumes, and the launcher's image for looking into them."""
    image_ids = source.surroundings.image_ids
    unpinned = False
    images = [
        (index, volume.get("name", ""), volume["containerDisk"])
        for index, volume in enumerate(source.volumes)
        if "containerDisk" in volume
    ]
    for index, name, disk in images:
        made.add(name, _image(image_ids.get(name, disk.get("image", "")), disk.get("imagePullPolicy")))
        made.mount(name, paths.join(paths.IMAGE_VOLUME_DIR, f"disk_{index}"), readOnly=True)
        unpinned |= not is_pinned(image_ids.get(name, ""))
    kernel = source.kernel_boot
    if kernel is not None:
        pinned = image_ids.get(KERNEL_BOOT_VOLUME, "")
        made.add(KERNEL_BOOT_VOLUME, _image(pinned or kernel.get("image", ""), kernel.get("imagePullPolicy")))
        made.mount(KERNEL_BOOT_VOLUME, paths.KERNEL_BOOT_DIR, readOnly=True)
        unpinned |= not is_pinned(pinned)
    if unpinned:
        made.add(LAUNCHER_VOLUME, _image(source.settings.launcher_image, source.config.image_pull_policy))


def is_pinned(image: str) -> bool:
    """Whether an image is named by its digest."""
    return "@sha256:" in image


def _image(reference: str, policy: str | None) -> dict[str, Any]:
    return {"image": {"reference": reference, **({"pullPolicy": policy} if policy else {})}}


def _memory_and_hotplug(made: PodVolumes, source: PodSource) -> None:
    if "hugepages" in source.domain.get("memory", ()):
        made.add("hugepages", {"emptyDir": {"medium": "HugePages"}})
        made.mount("hugepages", "/dev/hugepages")
        made.add("hugetblfs-dir", {"emptyDir": {}})
        made.mount("hugetblfs-dir", "/dev/hugepages/libvirt/qemu")
    if not source.devices.get("disableHotplug", False):
        made.add(HOTPLUG_DISKS, {"emptyDir": {}})
        made.mount(HOTPLUG_DISKS, source.settings.hotplug_disk_dir, mountPropagation="HostToContainer")


def _network_info(made: PodVolumes) -> None:
    """An annotation that the agent writes later, as a file (``pkg/network/downwardapi``)."""
    annotation = "metadata.annotations['kubevirt.io/network-info']"
    item = {"path": "network-info", "fieldRef": {"fieldPath": annotation}}
    made.mount(NETWORK_INFO, NETWORK_INFO_DIR)
    made.add(NETWORK_INFO, {"downwardAPI": {"items": [item]}})


def _chosen(source: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: source[name] for name in names if name in source}
