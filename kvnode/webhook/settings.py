"""What the webhooks know of their cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvnode.spec.config import ClusterConfig
from kvnode.spec.fields import get_mapping

ACCOUNTS = ("kvnode-controller", "kvnode-agent")
"""Service accounts of the components that write a VMI's status and its reserved labels."""

AGENT = "kvnode-agent"


@dataclass(frozen=True, slots=True)
class Settings:
    """The cluster's configuration, and who is who.

    Made once for each version of the KubeVirt object; never changed.
    """

    architecture: str = "amd64"
    """That of machines which name none: the API server's own."""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    """``spec.configuration`` of the KubeVirt object, as written."""
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    """The same, read."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the KubeVirt object."""
    accounts: frozenset[str] = frozenset()
    """User names of the components that may write a VMI's status and reserved labels."""
    agents: frozenset[str] = frozenset()
    """Those of them that are a node's agent."""

    @classmethod
    def of(
        cls,
        kubevirt: Mapping[str, Any],
        architecture: str,
        accounts: frozenset[str] = frozenset(),
        agents: frozenset[str] = frozenset(),
    ) -> Settings:
        """Read a KubeVirt object; ``{}`` for a cluster that has none.

        Raises:
            FieldError: its configuration cannot be read.
        """
        configuration = get_mapping(get_mapping(kubevirt, "spec", ""), "configuration", "spec.")
        annotations = get_mapping(get_mapping(kubevirt, "metadata", ""), "annotations", "metadata.")
        cluster = ClusterConfig.from_mapping(configuration)
        return cls(architecture, configuration, cluster, annotations, accounts, agents)


def user_names(namespace: str, accounts: tuple[str, ...]) -> frozenset[str]:
    """Names that the API server knows service accounts by: NAME of this namespace, or NAMESPACE/NAME."""
    found = set()
    for account in accounts:
        where, _, name = account.rpartition("/")
        found.add(f"system:serviceaccount:{where or namespace}:{name}")
    return frozenset(found)
