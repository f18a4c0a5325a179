"""What libvirt said of this node, out of the files of the init container (``node-labeller/cpu_plugin.go``)."""

from __future__ import annotations

import logging
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

from kvnode.agent.errors import AgentError
from kvnode.agent.labels.capabilities import (
    CROSS_ARCHITECTURE,
    DOMAIN_CAPABILITIES,
    SUPPORTED_FEATURES,
    Hypervisor,
    read_hypervisor,
)
from kvnode.agent.labels.labeller import Counter
from kvnode.agent.topology import read_topology
from kvnode.rpc.cmd_v1_pb2 import Topology

logger = logging.getLogger(__name__)

CAPABILITIES = "capabilities.xml"
_LARGEST = 16 << 20


@dataclass(slots=True)
class Node:
    """The node, as far as libvirt could be asked."""

    hypervisor: Hypervisor | None = None
    """None when the files are missing or cannot be read."""
    machines: tuple[str, ...] = ()
    deprecated_machines: tuple[str, ...] = ()
    counter: Counter | None = None
    topology: Topology = field(default_factory=Topology)

    @property
    def host_model(self) -> str:
        """Model that host-model stands for; "" when there is none."""
        return self.hypervisor.host_model if self.hypervisor else ""


def read_node(folder: Path, architecture: str) -> Node:
    """Read the files; what is missing is told of, and left out."""
    files = _files(folder)
    node = Node()
    try:
        node.hypervisor = read_hypervisor(architecture, files)
    except AgentError as error:
        logger.warning("%s: the node gets no labels of its CPU: %s", folder, error)
    text = files.get(CAPABILITIES)
    if text is None:
        logger.warning(
            "%s: is missing; the node's topology and machine types are not known", folder / CAPABILITIES
        )
        return node
    try:
        node.topology = read_topology(text)
        root = ET.fromstring(text)  # noqa: S314  (libvirt's own output)
        node.machines = _machines(root)
        node.deprecated_machines = _machines(root, "[@deprecated='yes']")
        node.counter = _counter(root)
    except (AgentError, ET.ParseError) as error:
        logger.warning("%s: %s", folder / CAPABILITIES, error)
    return node


def _files(folder: Path) -> dict[str, str]:
    found = {}
    for name in (CAPABILITIES, DOMAIN_CAPABILITIES, SUPPORTED_FEATURES, *CROSS_ARCHITECTURE.values()):
        try:
            with (folder / name).open(encoding="utf-8", errors="replace") as file:
                found[name] = file.read(_LARGEST)
        except FileNotFoundError:
            continue
        except OSError as error:
            logger.warning("%s: cannot be read: %s", folder / name, error.strerror)
    return found


def _machines(root: ET.Element, which: str = "") -> tuple[str, ...]:
    """Names of all machine types, or of some, each once."""
    names = (machine.text or "" for machine in root.iterfind(f"guest/arch/machine{which}"))
    return tuple(dict.fromkeys(name for name in names if name))


def _counter(root: ET.Element) -> Counter | None:
    for counter in root.iterfind("host/cpu/counter"):
        frequency = counter.get("frequency", "")
        if counter.get("name") == "tsc" and frequency.isascii() and frequency.isdigit():
            return Counter("tsc", int(frequency), counter.get("scaling") == "yes")
    return None
