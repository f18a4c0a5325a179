"""What a pod's networks add to it: annotations for Multus and Istio, and the devices' addresses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kvnode.spec.fields import get_string
from kvnode.spec.pod.source import PodSource

NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks"
DEFAULT_NETWORK_ANNOTATION = "v1.multus-cni.io/default-network"
ISTIO_ANNOTATIONS = ("traffic.sidecar.istio.io/kubevirtInterfaces", "istio.io/reroute-virtual-interfaces")
DEVICE_INFO = "device-info"

_DEFAULT_BRIDGE = "k6t-eth0"
_HASH_LENGTH = 11


def network_annotations(source: PodSource) -> dict[str, str]:
    """The annotations of a new pod (``pkg/network/pod/annotations/generator.go:54``)."""
    annotations: dict[str, str] = {}
    attachments = _attachments(source)
    if attachments:
        annotations[NETWORKS_ANNOTATION] = json.dumps(attachments, ensure_ascii=False, separators=(",", ":"))
    for network in source.spec.get("networks", ()):
        if network.get("multus", {}).get("default", False):
            annotations[DEFAULT_NETWORK_ANNOTATION] = network["multus"].get("networkName", "")
            break
    if any("masquerade" in interface for interface in source.interfaces):
        annotations |= dict.fromkeys(ISTIO_ANNOTATIONS, _DEFAULT_BRIDGE)
    return annotations


def pod_interface_name(network: str) -> str:
    """Name of a secondary network's interface in the pod (``pkg/network/namescheme``)."""
    return "pod" + hashlib.sha256(network.encode()).hexdigest()[:_HASH_LENGTH]


def wants_device_info(source: PodSource) -> bool:
    """Whether the launcher or a sidecar reads where the network devices are (``template.go:983``)."""
    return any(
        "sriov" in interface or _plugin_reads_devices(interface, source) for interface in source.interfaces
    )


def _plugin_reads_devices(interface: Mapping[str, Any], source: PodSource) -> bool:
    name = interface.get("binding", {}).get("name", "")
    plugin = source.config.network_bindings.get(name, {}) if "binding" in interface else {}
    path = f"spec.configuration.network.binding.{name}."
    return get_string(plugin, "downwardAPI", path) == DEVICE_INFO


def _attachments(source: PodSource) -> list[dict[str, Any]]:
    """The networks to attach, by interface, as Multus reads them (``pkg/network/multus/annotation.go``)."""
    networks = {network.get("name", ""): network for network in source.spec.get("networks", ())}
    found: list[dict[str, Any]] = []
    for interface in source.interfaces:
        name = interface.get("name", "")
        if interface.get("state") == "absent" or name not in networks:
            continue
        multus = networks[name].get("multus")
        if multus is not None and not multus.get("default", False):
            attachment = _definition(multus.get("networkName", ""), source.namespace)
            if interface.get("macAddress"):
                attachment["mac"] = interface["macAddress"]
            found.append({**attachment, "interface": pod_interface_name(name)})
        if "binding" in interface:
            found += _plugin_attachment(interface["binding"].get("name", ""), name, source)
    return found


def _plugin_attachment(plugin: str, network: str, source: PodSource) -> list[dict[str, Any]]:
    # That the plugin is registered has been checked with the sidecars.
    settings = source.config.network_bindings.get(plugin, {})
    path = f"spec.configuration.network.binding.{plugin}."
    definition = get_string(settings, "networkAttachmentDefinition", path)
    if not definition:
        return []
    return [{**_definition(definition, source.namespace), "cni-args": {"logicNetworkName": network}}]


def _definition(name: str, namespace: str) -> dict[str, Any]:
    """A NetworkAttachmentDefinition's name and namespace, which may be written before it."""
    before, slash, after = name.partition("/")
    return {"name": after, "namespace": before} if slash else {"name": name, "namespace": namespace}
