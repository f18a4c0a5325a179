"""Rules on volumes and their sources."""

from __future__ import annotations

from kvnode.spec import model
from kvnode.spec.cause import NOT_FOUND, shown
from kvnode.spec.validation.review import Json, Review
from kvnode.spec.validation.syntax import base64_length, byte_length, path_fault

_SOURCES = tuple(name for name in model.TYPES["Volume"] if name != "name")
_CLOUD_INIT_LIMIT = 2048  # bytes of user data, and of network data, vmi-create-admitter.go:62
_RESERVED_PATHS = ("/var/run/kubevirt", "/var/run/libvirt")
# Source -> the field that must name something (vmi-create-admitter.go:1858-1887).
_NAMED = {"configMap": "name", "secret": "secretName", "serviceAccount": "serviceAccountName"}


def check_volumes(review: Review) -> None:
    """Names are unique, sources single, and some kinds are there once (vmi-create-admitter.go:1617)."""
    seen: dict[str, int] = {}
    for index, volume in enumerate(review.volumes):
        path = f"volumes[{index}]"
        first = seen.setdefault(volume.get("name", ""), index)
        if first != index:
            review.invalid(f"{path}.name", f"is also the name of volume {first}: names are unique")
        sources = [name for name in _SOURCES if name in volume]
        if len(sources) != 1:
            found = f"has {' and '.join(sources)}" if sources else "has no source"
            review.invalid(path, f"{found}: exactly one source must be set")
        if "dataVolume" in volume and not volume["dataVolume"].get("name"):
            review.required(f"{path}.name", "must be given for the dataVolume, as dataVolume.name")
        if "downwardMetrics" in volume and not review.config.gate("DownwardMetrics"):
            review.invalid(path, "is downwardMetrics, which needs the feature gate DownwardMetrics")
        _check_cloud_init(review, path, volume)
        _check_host_disk(review, path, volume)
        for source, field in _NAMED.items():
            if source in volume and not volume[source].get(field):
                review.invalid(f"{path}.{source}.{field}", "must be given")
    for source in ("serviceAccount", "downwardMetrics", "memoryDump"):
        count = sum(source in volume for volume in review.volumes)
        if count > 1:
            review.invalid("volumes", f"may have one {source} volume at most, not {count}")


def _check_cloud_init(review: Review, path: str, volume: Json) -> None:
    """Cloud-init data: some, each kind from one source, and short (vmi-create-admitter.go:1718-1823)."""
    kind = next((name for name in ("cloudInitNoCloud", "cloudInitConfigDrive") if name in volume), None)
    if kind is None:
        return
    path, source = f"{path}.{kind}", volume[kind]
    user = _check_data(review, path, source, "secretRef", "userData")
    network = _check_data(review, path, source, "networkDataSecretRef", "networkData")
    if not user and not network:
        review.invalid(path, "has no data: set userData, networkData, or one of their other sources")


def _check_data(review: Review, path: str, source: Json, secret: str, inline: str) -> int:
    """Check one kind of data (inline, base64 or in a secret) and return its number of sources."""
    encoded, text = source.get(f"{inline}Base64", ""), source.get(inline, "")
    length = 0
    if encoded:
        decoded = base64_length(encoded)
        if decoded is None:
            review.invalid(f"{path}.{inline}Base64", "is not base64: encode the data with padding")
        length = decoded or 0
    if text:
        length = byte_length(text)
    count = sum(map(bool, (encoded, text, (source.get(secret) or {}).get("name"))))
    if count > 1:
        review.invalid(path, f"has {count} sources of {inline}: one of {inline}, {inline}Base64, {secret}")
    if length > _CLOUD_INIT_LIMIT:
        message = f"has {length} bytes of {inline}: at most {_CLOUD_INIT_LIMIT}, or a secret in {secret}"
        review.invalid(path, message)
    return count


def _check_host_disk(review: Review, path: str, volume: Json) -> None:
    """Files of the node (vmi-create-admitter.go:1834-1870)."""
    host_disk = volume.get("hostDisk")
    if host_disk is None:
        return
    if not review.config.gate("HostDisk"):
        review.invalid(path, "is a hostDisk, which needs the feature gate HostDisk")
    if not host_disk.get("path"):
        review.add(NOT_FOUND, f"{path}.hostDisk.path", "must be the path of a disk image on the node")
    kind = host_disk.get("type", "")
    if kind not in ("Disk", "DiskOrCreate"):
        review.invalid(f"{path}.hostDisk.type", f"is {shown(kind)}: must be Disk or DiskOrCreate")
    if kind == "Disk" and host_disk.get("capacity"):
        message = "cannot be set for the type Disk, an image that exists: use DiskOrCreate, or remove it"
        review.invalid(f"{path}.hostDisk.capacity", message)


def check_volume_devices(review: Review) -> None:
    """Each volume is used by a disk or a filesystem (vmi-create-admitter.go:288; paths below domain)."""
    disks = {disk.get("name", "") for disk in review.disks}
    filesystems = {item.get("name", "") for item in review.devices.get("filesystems", [])}
    for index, volume in enumerate(review.volumes):
        if "memoryDump" in volume:
            continue
        name = volume.get("name", "")
        path = f"domain.volumes[{index}]"
        if name not in disks and name not in filesystems:
            review.invalid(
                f"{path}.name", f"is {shown(name)}: must name one of devices.disks or .filesystems"
            )
        if "containerPath" in volume:
            _check_container_path(review, path, name in disks, name in filesystems, volume)


def _check_container_path(review: Review, path: str, disk: bool, filesystem: bool, volume: Json) -> None:
    """A path of the pod goes to the guest by virtiofs (vmi-create-admitter.go:318; schema.go:141-153)."""
    if disk:
        review.invalid(path, "is a containerPath, which cannot be a disk: use domain.devices.filesystems")
    if not filesystem:
        review.invalid(path, "is a containerPath, which needs one of domain.devices.filesystems")
    source = volume["containerPath"]
    text = source.get("path", "")
    reserved = next((prefix for prefix in _RESERVED_PATHS if text.startswith(prefix)), None)
    path += ".containerPath"
    if reserved:
        review.invalid(f"{path}.path", f"is {shown(text)}: {reserved} belongs to KubeVirt")
    if not text.startswith("/") or ".." in text or len(text) > 4096:
        review.invalid(f"{path}.path", "must be an absolute path without '..', of 4096 characters at most")
    if source.get("readOnly", True) is False:
        review.invalid(f"{path}.readOnly", "must be true: the guest cannot write there")


def check_container_disks(review: Review) -> None:
    """Paths of disks in images (pkg/storage/admitters/disks.go:67)."""
    for index, volume in enumerate(review.volumes):
        path = (volume.get("containerDisk") or {}).get("path", "")
        fault = path_fault(path) if path else None
        if fault:
            review.invalid(f"volumes[{index}].containerDisk", f"has the path {shown(path)}, which {fault}")


def check_utility_volumes(review: Review) -> None:
    """Utility volumes come by hotplug only (pkg/storage/admitters/storagehotplug.go:439)."""
    if "utilityVolumes" in review.spec:
        review.invalid("utilityVolumes", "cannot be there from the start: they are added while the VM runs")


RULES = (check_volumes, check_volume_devices, check_container_disks, check_utility_volumes)
