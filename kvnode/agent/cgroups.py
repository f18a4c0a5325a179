"""Control groups of a process, as the node has them (cgroups(7))."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kvnode.agent.errors import AgentError

ROOT = Path("/proc/1/root/sys/fs/cgroup")
"""The node's, whatever the agent's container has at that place (``pkg/virt-handler/cgroup/constants``)."""
OWN = Path("/sys/fs/cgroup")
"""This process' own: where the root of the node's first process may not be looked into, it is what there is."""

HOUSEKEEPING = "housekeeping"
"""The one group that is made inside a launcher's: for threads that must keep off the guest's CPUs."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Where a process is in each hierarchy."""

    unified: bool
    """Version 2: one hierarchy for all."""
    folders: Mapping[str, Path]
    """By controller; of version 2, that of all is under ""."""

    def folder(self, controller: str) -> Path:
        """The folder of a controller; raises AgentError."""
        name = "" if self.unified else controller
        try:
            return self.folders[name]
        except KeyError:
            raise AgentError(
                f"the launcher's control groups: it has none of the controller {controller}"
            ) from None


def groups_of(pid: int, *, proc: Path = Path("/proc"), root: Path = ROOT) -> Groups:
    """The control groups of a launcher's process.

    A process that was put among the helpers of its VM counts as where the launcher is.

    Raises:
        AgentError: the process is gone.
    """
    try:
        text = (proc / str(pid) / "cgroup").read_text()
    except OSError as error:
        raise AgentError(f"the launcher's control groups: process {pid}: {error.strerror}") from error
    if root == ROOT and not os.access(ROOT, os.X_OK):
        root = OWN
    unified = (root / "cgroup.controllers").exists()
    folders = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if unified != (number == "0") or ".." in path.split("/"):
            continue
        inside = path.strip("/").removesuffix(f"/{HOUSEKEEPING}")
        for controller in controllers.split(","):
            folders[controller] = (root if unified else root / controller) / inside
    return Groups(unified, folders)
