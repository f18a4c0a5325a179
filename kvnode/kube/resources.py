"""Kinds of objects and their paths in the API."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object that the API server serves."""

    group: str
    """"" for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``group/version`` as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path below the server's URL.

        Without a name it is the collection, without a namespace that of all namespaces.

        Raises:
            ValueError: a name or namespace that cannot be one.
        """
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace:
            if not self.namespaced:
                raise ValueError(f"{self.plural} belong to no namespace, {namespace!r} was given")
            parts += ["namespaces", namespace]
        elif name and self.namespaced:
            raise ValueError(f"{self.plural} {name!r}: a namespace is needed")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts += subresource.split("/")
        for part in parts:
            if part in ("", ".", "..") or "/" in part:
                raise ValueError(f"{self.plural}: {part!r} is no name")
        return "/" + "/".join(quote(part, safe=":") for part in parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("", "v1", "events", "Event")
SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
VIRTUAL_MACHINES = Resource("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
VIRTUAL_MACHINE_INSTANCES = Resource("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
KUBEVIRTS = Resource("kubevirt.io", "v1", "kubevirts", "KubeVirt")
DATA_VOLUMES = Resource("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
