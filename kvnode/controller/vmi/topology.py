"""The frequency that a guest's time-stamp counter is to have (``pkg/virt-controller/watch/topology``)."""

from __future__ import annotations

from kvnode.controller.meta import at, labels_of, spec_of, status_of
from kvnode.controller.vmi.run import Run
from kvnode.kube.objects import Object

FREQUENCY_LABEL = "cpu-timer.node.kubevirt.io/tsc-frequency"
SCHEDULABLE_LABEL = "kubevirt.io/schedulable"


def needs_frequency(vmi: Object) -> bool:
    """Whether the guest relies on a counter of one frequency: to boot, or to migrate."""
    if spec_of(vmi).get("architecture") != "amd64":
        return False
    domain = spec_of(vmi).get("domain") or {}
    wanted = at(domain, "cpu", "features") or ()
    if any(one.get("name") == "invtsc" and one.get("policy") in ("require", "force") for one in wanted):
        return True
    return bool(at(domain, "features", "hyperv", "reenlightenment", "enabled"))


def has_frequency(vmi: Object) -> bool:
    """Whether it has been chosen."""
    return at(vmi, "status", "topologyHints") is not None


def choose_frequency(run: Run) -> None:
    """Note the lowest frequency of the cluster in the VMI's status; 0: no node offers one, and any must do."""
    if has_frequency(run.vmi) or not needs_frequency(run.vmi):
        return
    chosen = run.settings.config.minimum_cluster_tsc_frequency or _lowest(run)
    status_of(run.vmi)["topologyHints"] = {"tscFrequency": chosen}


def _lowest(run: Run) -> int:
    busy = {at(one, "status", "nodeName") for one in run.caches.vmis.objects()}
    found = []
    for node in run.caches.nodes.objects():
        text = labels_of(node).get(FREQUENCY_LABEL, "")
        usable = labels_of(node).get(SCHEDULABLE_LABEL) == "true" or node["metadata"].get("name") in busy
        if usable and text.isascii() and text.isdigit() and int(text) > 0:
            found.append(int(text))
    return min(found, default=0)
