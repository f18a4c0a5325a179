"""All that a VM could leave on its node."""

from __future__ import annotations

import time

from tests.cluster.cluster import Cluster

_PRIVATE = "/var/run/kubevirt-private"
_PODS = "/var/lib/kubelet/pods"
_PROGRAMS = (
    "qemu-system",
    "libvirtd",
    "virtlogd",
    "virt-launcher",
    "kvnode/launcher",
    "virt-tail",
    "container-disk",
)


def settled(cluster: Cluster, node: str) -> set[str]:
    """The state of a node once nothing comes or goes there: other VMs may be about to start or to end."""
    quiet, before = 0, state(cluster, node)
    for _ in range(120):
        time.sleep(2)
        found = state(cluster, node)
        quiet = quiet + 1 if found == before else 0
        if quiet == 3:
            return found
        before = found
    raise AssertionError(f"{node} does not come to rest")


def state(cluster: Cluster, node: str) -> set[str]:
    """What VMs are made of, on a node: mounts, links, network namespaces, pods' folders, records, processes."""

    def lines(*command: str) -> list[str]:
        return cluster.run_on(node, *command).splitlines()

    mounts = {line.split()[1] for line in lines("cat", "/proc/mounts")}
    links = {line.split()[0] for line in lines("ip", "-br", "link")}
    processes = [
        line for line in lines("ps", "-eo", "pid=,args=", "-ww") if any(name in line for name in _PROGRAMS)
    ]
    return {
        *(f"mount {path}" for path in mounts),
        *(f"link {name}" for name in links),
        *(f"network namespace {name}" for name in lines("ls", "/run/netns")),
        *(f"pod {uid}" for uid in lines("ls", _PODS)),
        *(f"record {path}" for path in lines("find", _PRIVATE, "-mindepth", "2")),
        *(f"process {line}" for line in processes),
    }
