"""Launcher pods as they are without the feature gate ImageVolume: containers hold the images of container disks."""

from __future__ import annotations

from typing import Any

_DISKS = "/var/run/kubevirt/container-disks"
_BINARIES = "virt-bin-share-dir"


def with_container_disks(pod: dict[str, Any], uid: str) -> dict[str, Any]:
    """The hand-written pod, changed so; ``uid`` is the VMI's."""
    spec = pod["spec"]
    log, _ = spec["initContainers"]
    [compute] = spec["containers"]
    unprivileged = log["securityContext"]
    holder = {
        "image": "kvnode/demo-guest:0.1.0",
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/container-disk"],
        "securityContext": unprivileged,
        "resources": {"requests": {"cpu": "1m", "memory": "1M"}, "limits": {"cpu": "10m", "memory": "40M"}},
    }
    binaries = {"name": _BINARIES, "mountPath": "/usr/bin"}
    copy = ["/usr/bin/cp", "--preserve=all", "/usr/bin/container-disk", "/init/usr/bin/container-disk"]
    binary = {
        "name": "container-disk-binary",
        "image": compute["image"],
        "imagePullPolicy": "IfNotPresent",
        "command": copy,
        "securityContext": unprivileged,
        "volumeMounts": [{"name": _BINARIES, "mountPath": "/init/usr/bin"}],
    }
    proof = {**holder, "name": "volumesystem-init", "args": ["--no-op"], "volumeMounts": [binaries]}
    disks = {"name": "container-disks", "mountPath": f"{_DISKS}/{uid}"}
    held = {
        **holder,
        "name": "volumesystem",
        "args": ["--copy-path", f"{_DISKS}/{uid}/disk_0"],
        "volumeMounts": [disks, binaries],
    }
    compute["command"].remove("--image-volume")
    mounts = [mount for mount in compute["volumeMounts"] if mount["name"] != "system"]
    shared = {"name": "container-disks", "mountPath": _DISKS, "mountPropagation": "HostToContainer"}
    compute["volumeMounts"] = [*mounts, shared]
    spec["volumes"] = [volume for volume in spec["volumes"] if "image" not in volume]
    spec["volumes"].append({"name": "container-disks", "emptyDir": {}})
    spec["initContainers"] = [log, binary, proof]
    spec["containers"] = [compute, held]
    return pod
