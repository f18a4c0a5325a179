"""VMIs, domains and the world around them for the agent's tests."""

from __future__ import annotations

from typing import Any

from kvnode.agent.domain import Domain
from kvnode.agent.execute import execute
from tests.reference.groups._agent import NOW, drive
from tests.reference.groups.agent_sync import KEY, World

__all__ = ["KEY", "NOW", "domain", "drive", "run", "vmi", "world"]

CLEAN_UP = [
    "migrationProxy.StopTargetListener",
    "migrationProxy.StopSourceListener",
    "downwardMetrics.StopServer",
    "containerDisks.Unmount",
    "hotplug.UnmountAll",
    "net.Teardown",
    "netStat.Teardown",
    "launcherClients.Close",
]
# What follows the end of a domain.
DELETE = ["event:Normal:Deleted", "launcher.DeleteVirtualMachine", "launcherClients.Close", *CLEAN_UP]
GRACE = {"GracePeriod": {"DeletionGracePeriodSeconds": 30}}
DELETED = "2024-06-01T12:00:00Z"


def vmi(phase: str = "Running", *, spec: Any = None, status: Any = None, **metadata: Any) -> dict[str, Any]:
    """A VMI of this node."""
    return {
        "metadata": {
            "name": "testvmi",
            "namespace": "default",
            "uid": "uid-1",
            "resourceVersion": "7",
            "labels": {"kubevirt.io/nodeName": "node01"},
            **metadata,
        },
        "spec": {"domain": {"devices": {}}, **(spec or {})},
        "status": {"phase": phase, "nodeName": "node01", "activePods": {"pod-1": "node01"}, **(status or {})},
    }


def domain(status: str = "Running", reason: str = "", uid: str = "uid-1", **spec: Any) -> Domain:
    """A domain of that VMI."""
    metadata = {"KubeVirt": {"UID": uid, **spec.pop("metadata", {})}}
    return Domain(
        {
            "ObjectMeta": {"namespace": "default", "name": "testvmi"},
            "Spec": {"Metadata": metadata, **spec},
            "Status": {"Status": status, "Reason": reason},
        }
    )


def world(one: dict[str, Any] | None, about: Domain | None, launcher: str = "ok", **row: Any) -> World:
    """A node with this VMI, this domain and a launcher in this state."""
    made = World({"vmi": one, "domain": None, "launcher": launcher, **row})
    made.domain = about
    return made


def run(made: World) -> list[str]:
    """What one pass calls."""
    drive(execute(KEY, made.parts))
    return made.calls


def deleted(about: Domain) -> Domain:
    """It, said to be going."""
    meta = {**about.raw["ObjectMeta"], "deletionTimestamp": DELETED}
    return Domain({**about.raw, "ObjectMeta": meta})
