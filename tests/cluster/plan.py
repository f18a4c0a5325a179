"""What one cluster is made of, written down before anything is started; and where clusters are."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

POD_NETWORK = "10.244.0.0/16"
SERVICE_NETWORK = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
CONTROL_ADDRESS = "10.77.0.1"
"""The control plane's address on the nodes' bridge, which is in a network namespace of the cluster's own."""
INSIDE_PORT = 6443


@dataclass(frozen=True)
class Plan:
    """A cluster, whatever its state."""

    name: str
    nodes: int
    """Number of nodes; with none the control plane alone runs, on loopback."""
    audit: bool
    """Whether the API server writes ``audit.log``, one line a request."""
    programs: dict[str, str]
    directory: str

    @property
    def root(self) -> Path:
        """The cluster's directory, in which all of its files are."""
        return Path(self.directory)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.root / "kubeconfig"

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(f"node{number}" for number in range(1, self.nodes + 1))

    def cgroup(self, node: str) -> str:
        """Name of a node's root in every cgroup hierarchy."""
        return f"kvnode-{self.name}-{node}"

    def save(self) -> None:
        """Write the plan into its directory."""
        (self.root / "plan.json").write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def load(cls, directory: Path) -> Plan:
        """The plan in a directory."""
        return cls(**json.loads((directory / "plan.json").read_text()))


def home() -> Path:
    """The directory of all clusters of this user, one directory each."""
    # Not below /run, /var/lib or /var/log: a node has its own of these.
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "kvnode" / "cluster"


def node_number(node: str) -> int:
    """1 for ``node1``."""
    return int(node.removeprefix("node"))


def node_address(node: str) -> str:
    """A node's address on the bridge."""
    return f"10.77.0.{10 + node_number(node)}"


def pod_network(node: str) -> str:
    """The addresses of a node's pods."""
    return f"10.244.{node_number(node)}.0/24"
