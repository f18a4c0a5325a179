"""The node's sign of life, and whether VMs may be scheduled to it (``pkg/virt-handler/heartbeat/heartbeat.go``)."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import orjson

from kvnode.kube.objects import timestamp

SCHEDULABLE = "kubevirt.io/schedulable"
HEARTBEAT = "kubevirt.io/heartbeat"
CPU_MANAGER = "kubevirt.io/cpumanager"
DEPRECATED_CPU_MANAGER = "cpumanager"
STATE_FILES = (
    "/var/lib/kubelet/cpu_manager_state",
    "/var/lib/origin/openshift.local.volumes/cpu_manager_state",
)
"""Where kubelet keeps its CPU manager's state; the first that is there counts."""

CONTENT_TYPE = "application/strategic-merge-patch+json"
INTERVAL = 60.0
JITTER = 1.2
PLUGIN_WAIT = 10.0
"""Seconds that the first beat is followed by a second when the device plugins come up."""


def has_static_cpu_manager(state: str | bytes | None) -> bool:
    """Whether kubelet pins CPUs, by the text of its state file; None when there is none."""
    try:
        found = orjson.loads(state) if state is not None else None
    except orjson.JSONDecodeError:
        return False
    return isinstance(found, dict) and found.get("policyName") == "static"


def beat(now: datetime, *, ready: bool, pins_cpus: bool) -> dict[str, Any]:
    """The patch of the node (strategic merge).

    ``ready``: all device plugins were started, and the agent is not about to end. ``pins_cpus``: the gate CPUManager
    is on, and kubelet pins CPUs.
    """
    pins = "true" if pins_cpus else "false"
    labels = {
        SCHEDULABLE: "true" if ready else "false",
        DEPRECATED_CPU_MANAGER: pins,
        CPU_MANAGER: pins,
    }
    return {"metadata": {"labels": labels, "annotations": {HEARTBEAT: timestamp(now)}}}


def next_interval(chance: random.Random) -> float:
    """Seconds to the next beat: 60 to 132, so that nodes do not beat together."""
    return INTERVAL * (1 + chance.random() * JITTER)
