"""Hook sidecars: containers that a VMI's annotation or a network binding plugin adds to the pod."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.spec.config import ClusterConfig
from kvnode.spec.fields import get_mapping, get_string, get_strings, wrong_type

HOOK_SIDECARS_ANNOTATION = "hooks.kubevirt.io/hookSidecars"
_FIELD = f"metadata.annotations[{HOOK_SIDECARS_ANNOTATION}]"


@dataclass(frozen=True, slots=True)
class HookSidecar:
    """One container that takes part in defining the domain (``pkg/hooks/hooks.go``)."""

    image: str
    image_pull_policy: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    config_map: Mapping[str, str] | None = None
    """``name``, ``key`` and ``hookPath``."""
    pvc: Mapping[str, str] | None = None
    """``name``, ``volumePath`` and ``sharedComputePath``."""
    device_info: bool = False
    """Whether it reads the network devices' addresses."""
    binding_plugin: str = ""
    """The network binding plugin that it belongs to."""


def hook_sidecars(
    annotations: Mapping[str, str], interfaces: Sequence[Mapping[str, Any]], config: ClusterConfig
) -> list[HookSidecar]:
    """The sidecars of the annotation, then those of the binding plugins in the order of their first use.

    ``pkg/network/netbinding/netbinding.go``

    Raises:
        FieldError: the annotation is no list of sidecars, or a plugin is not registered.
    """
    return [*_annotated(annotations), *_of_plugins(interfaces, config)]


def _annotated(annotations: Mapping[str, str]) -> list[HookSidecar]:
    text = annotations.get(HOOK_SIDECARS_ANNOTATION)
    if text is None:
        return []
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        raise FieldError(_FIELD, "must be a JSON list of sidecars") from None
    if items is None:
        return []
    if not isinstance(items, list):
        raise wrong_type(_FIELD, "a JSON list of sidecars", items)
    return [_read(item, f"{_FIELD}[{index}]") for index, item in enumerate(items)]


def _read(item: object, path: str) -> HookSidecar:
    if not isinstance(item, dict):
        raise wrong_type(path, "an object with an image", item)
    path += "."
    return HookSidecar(
        image=get_string(item, "image", path),
        image_pull_policy=get_string(item, "imagePullPolicy", path),
        command=tuple(get_strings(item, "command", path)),
        args=tuple(get_strings(item, "args", path)),
        config_map=_texts(item, "configMap", ("name", "key", "hookPath"), path),
        pvc=_texts(item, "pvc", ("name", "volumePath", "sharedComputePath"), path),
    )


def _texts(
    parent: Mapping[str, Any], key: str, names: tuple[str, ...], path: str
) -> Mapping[str, str] | None:
    if parent.get(key) is None:
        return None
    section = get_mapping(parent, key, path)
    return {name: get_string(section, name, f"{path}{key}.") for name in names}


def _of_plugins(interfaces: Sequence[Mapping[str, Any]], config: ClusterConfig) -> list[HookSidecar]:
    found: dict[str, HookSidecar | None] = {}
    for index, interface in enumerate(interfaces):
        if "binding" not in interface:
            continue
        name = interface["binding"].get("name", "")
        plugin = config.network_bindings.get(name)
        if plugin is None:
            raise FieldError(
                f"spec.domain.devices.interfaces[{index}].binding.name",
                f"{name!r} is no network binding plugin of this cluster: register it in the KubeVirt object",
            )
        path = f"spec.configuration.network.binding.{name}."
        image = get_string(plugin, "sidecarImage", path)
        found[name] = HookSidecar(
            image,
            config.image_pull_policy,
            device_info=get_string(plugin, "downwardAPI", path) == "device-info",
            binding_plugin=name,
        )
        if not image:
            found[name] = None
    return [sidecar for sidecar in found.values() if sidecar]
