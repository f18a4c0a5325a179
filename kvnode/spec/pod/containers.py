"""The launcher's own containers beside compute: the console's log, file systems, hook sidecars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.spec.pod import paths
from kvnode.spec.pod.compute import TERMINATION_MESSAGE_POLICY, user_environment
from kvnode.spec.pod.logging import VERBOSITY_VARIABLE, verbosity
from kvnode.spec.pod.security import powerless_context, user_context
from kvnode.spec.pod.sidecars import HookSidecar
from kvnode.spec.pod.source import NON_ROOT_USER, PodSource
from kvnode.spec.pod.support import GUEST_CONSOLE_LOG, SIDECAR, VIRTIOFS, support_resources
from kvnode.spec.pod.volumes import HOOK_SOCKETS, NETWORK_INFO, NETWORK_INFO_DIR, PodVolumes
from kvnode.spec.pod.volumes import VIRTIOFS as VIRTIOFS_VOLUME

_EXECUTABLE = 0o755
_SHARED_DIRS = {
    "configMap": paths.CONFIG_MAP_DIR,
    "secret": paths.SECRET_DIR,
    "downwardAPI": paths.DOWNWARD_API_DIR,
}


def console_log_container(source: PodSource) -> list[dict[str, Any]]:
    """The container that prints what the guest writes to its console (``serialconsolelog.go``).

    It is an init container that is restarted, and so runs as long as the pod; none if nothing is logged.
    """
    devices = source.devices
    logged = devices.get("logSerialConsole", not source.config.disable_serial_console_log)
    if not (devices.get("autoattachSerialConsole", True) and logged):
        return []
    return [
        {
            "name": "guest-console-log",
            "image": source.settings.launcher_image,
            "imagePullPolicy": source.config.image_pull_policy,
            "command": ["/usr/bin/virt-tail"],
            "args": ["--logfile", f"{paths.PRIVATE_DIR}/{source.uid}/virt-serial0-log"],
            "env": [{"name": VERBOSITY_VARIABLE, "value": str(verbosity(source))}],
            "resources": support_resources(
                source.config,
                GUEST_CONSOLE_LOG,
                requests={"cpu": "5m", "memory": "35M"},
                limits={"cpu": "15m", "memory": "60M"},
                guaranteed=source.guaranteed,
            ),
            "restartPolicy": "Always",
            "securityContext": powerless_context(),
            "volumeMounts": [{"name": "private", "mountPath": paths.PRIVATE_DIR, "readOnly": True}],
        }
    ]


def virtiofs_containers(source: PodSource) -> list[dict[str, Any]]:
    """A virtiofsd for each volume that is a file system of the guest (``virtiofs.go``).

    Those of a container path are made by a webhook on the pod, once their volume is known.
    """
    shared = {filesystem.get("name", "") for filesystem in source.devices.get("filesystems", ())}
    return [
        _virtiofs_container(source, volume)
        for volume in source.volumes
        if volume.get("name", "") in shared and "containerPath" not in volume
    ]


def _virtiofs_container(source: PodSource, volume: Mapping[str, Any]) -> dict[str, Any]:
    name, directory = volume.get("name", ""), _shared_dir(volume)
    arguments = [
        f"--socket-path={paths.join(paths.VIRTIOFS_DIR, name + '.sock')}",
        f"--shared-dir={directory}",
        "--sandbox=none",
        "--cache=auto",
        "--migration-on-error=guest-error",
        "--migration-mode=find-paths",
    ]
    mounts = [{"name": VIRTIOFS_VOLUME, "mountPath": paths.VIRTIOFS_DIR}]
    if "serviceAccount" in volume:
        # The token's links belong to the pod's user; the guest's root follows only its own in that directory.
        arguments.append(f"--translate-uid=host:{NON_ROOT_USER}:0:1")
    else:
        mounts.append({"name": name, "mountPath": directory})
    return {
        "name": f"virtiofs-{name}",
        "image": source.settings.launcher_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/libexec/virtiofsd"],
        "args": arguments,
        "resources": support_resources(
            source.config,
            VIRTIOFS,
            requests={"cpu": "10m", "memory": "1M"},
            limits={"cpu": "100m", "memory": "80M"},
            guaranteed=source.guaranteed,
        ),
        "securityContext": powerless_context(group=True),
        "volumeMounts": mounts,
    }


def _shared_dir(volume: Mapping[str, Any]) -> str:
    name = volume.get("name", "")
    if "serviceAccount" in volume:
        return paths.SERVICE_ACCOUNT_DIR
    for kind, directory in _SHARED_DIRS.items():
        if kind in volume:
            return paths.join(directory, name)
    return f"/{name}"


def sidecar_containers(
    source: PodSource, volumes: PodVolumes
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The hook sidecars (``template.go:583-624``), and the volumes that they bring.

    A claim that a sidecar shares with compute is added to the mounts of `volumes`.
    """
    containers, brought = [], []
    for index, sidecar in enumerate(source.sidecars):
        containers.append(_sidecar_container(source, sidecar, f"hook-sidecar-{index}"))
        if sidecar.config_map is not None:
            name = sidecar.config_map["name"]
            brought.append({"name": name, "configMap": {"name": name, "defaultMode": _EXECUTABLE}})
        if sidecar.pvc is not None:
            name = sidecar.pvc["name"]
            brought.append({"name": name, "persistentVolumeClaim": {"claimName": name}})
            if sidecar.pvc["sharedComputePath"]:
                volumes.mount(name, sidecar.pvc["sharedComputePath"])
    return containers, brought


def _sidecar_container(source: PodSource, sidecar: HookSidecar, name: str) -> dict[str, Any]:
    variables = [*user_environment(source.user), {"name": "CONTAINER_NAME", "value": name}]
    if sidecar.binding_plugin:
        variables.append({"name": "NETWORK_BINDING_PLUGIN_NAME", "value": sidecar.binding_plugin})
    context = user_context(source.user)
    if source.non_root:
        context["capabilities"] = {"drop": ["ALL"]}
    return {
        "name": name,
        "image": sidecar.image or source.settings.sidecar_shim_image,
        "imagePullPolicy": sidecar.image_pull_policy,
        "command": list(sidecar.command),
        "args": list(sidecar.args),
        "env": variables,
        "resources": support_resources(
            source.config,
            SIDECAR,
            requests={},
            limits={"cpu": "200m", "memory": "64M"} if source.guaranteed else {},
            guaranteed=source.guaranteed,
        ),
        "securityContext": context,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "volumeMounts": _sidecar_mounts(sidecar, name),
    }


def _sidecar_mounts(sidecar: HookSidecar, name: str) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [{"name": HOOK_SOCKETS, "mountPath": paths.HOOKS_DIR, "subPath": name}]
    if sidecar.device_info:
        mounts.append({"name": NETWORK_INFO, "mountPath": NETWORK_INFO_DIR})
    if sidecar.config_map is not None:
        script = sidecar.config_map
        mounts.append({"name": script["name"], "mountPath": script["hookPath"], "subPath": script["key"]})
    if sidecar.pvc is not None:
        mounts.append({"name": sidecar.pvc["name"], "mountPath": sidecar.pvc["volumePath"]})
    return mounts
