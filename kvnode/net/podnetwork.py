"""The networks of this node's pods, as the VMIs want them (``pkg/network/setup/netconf.go``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.net import istio
from kvnode.net.cache import PRIVATE, Cache, RecordedProgresses
from kvnode.net.desired import Request
from kvnode.net.driver import Driver
from kvnode.net.netns import run_in
from kvnode.net.setup import setup
from kvnode.spec.config import ClusterConfig
from kvnode.spec.overhead import topology_vcpus

_POD_IP = "MY_POD_IP"
_UNIX = "Unix"
_NON_ROOT = "kubevirt.io/nonroot"
_NON_ROOT_USER = 107
# What the kernel gives one tap.
_MOST_QUEUES = 256
_PORT_RANGES = "PortRangesSpec"


class ProcessNamespace:
    """The network namespace of a process."""

    def __init__(self, pid: int, proc: Path | None = None) -> None:
        """``pid`` is looked up each time, in ``proc`` when that is its folder in /proc."""
        self._pid = pid
        self._proc = proc

    def run(self, work: Callable[[Driver], None]) -> None:
        """Do something in it, with a netlink socket of its own; raises NetError."""

        def body() -> None:
            # It brings pyroute2, which only an agent holds.
            from kvnode.net.kernel import Kernel  # noqa: PLC0415

            with Kernel() as driver:
                work(driver)

        run_in(self._pid, body, self._proc)


class PodNetworks:
    """Sets the networks up and remembers what they had. Calls for one VMI come one at a time; they block."""

    def __init__(self, private: Path = Path("/") / PRIVATE, owner: int = _NON_ROOT_USER) -> None:
        """``private`` is the agent's folder of records; ``owner``, user and group, reads them."""
        self._private = private
        self._owner = owner
        self._progresses: dict[str, RecordedProgresses] = {}
        self._addresses: dict[tuple[str, str], Sequence[str]] = {}

    def setup(
        self,
        vmi: Mapping[str, Any],
        networks: Sequence[Mapping[str, Any]],
        launcher_pid: int,
        config: ClusterConfig,
        proc: Path | None = None,
    ) -> None:
        """Set these networks of a VMI up in the namespace of its launcher, whose folder in /proc is ``proc``.

        Raises NetError when it may be tried again, CriticalNetError when that is no use.
        """
        request = request_for(vmi, networks, launcher_pid, config, os.environ.get(_POD_IP, ""))
        proc = proc or Path(f"/proc/{launcher_pid}")
        cache = self._cache(request.uid, proc / "root")
        progresses = self._progresses.setdefault(request.uid, RecordedProgresses(cache))
        # The launcher may be another than when it was remembered.
        progresses.cache = cache
        for network in networks:
            self._addresses.pop((request.uid, str(network.get("name"))), None)
        setup(request, cache, progresses, ProcessNamespace(launcher_pid, proc))

    def teardown(self, uid: str) -> None:
        """Remove the records of a VMI; its namespace ends with its pod. Raises NetError."""
        self.forget(uid)
        self._progresses.pop(uid, None)
        self._cache(uid).remove_all()

    def forget(self, uid: str) -> None:
        """Drop what is in memory of a VMI's addresses."""
        for key in [key for key in self._addresses if key[0] == uid]:
            del self._addresses[key]

    def pod_addresses(self, uid: str, network: str) -> Sequence[str]:
        """The addresses that the pod had for a network, the preferred one first; raises NetError."""
        if (uid, network) not in self._addresses:
            found = self._cache(uid).read(network)
            if found is None:
                return ()
            self._addresses[uid, network] = found.addresses
        return self._addresses[uid, network]

    def _cache(self, uid: str, launcher_root: Path = Path("/nonexistent")) -> Cache:
        return Cache(self._private, uid, launcher_root, self._owner)


def request_for(
    vmi: Mapping[str, Any],
    networks: Sequence[Mapping[str, Any]],
    launcher_pid: int,
    config: ClusterConfig,
    pod_ip: str,
) -> Request:
    """Return what a VMI asks of its pod's network."""
    metadata, status = vmi.get("metadata") or {}, vmi.get("status") or {}
    domain = (vmi.get("spec") or {}).get("domain") or {}
    devices = domain.get("devices") or {}
    interfaces = {one.get("name"): one for one in devices.get("interfaces") or ()}
    annotations = metadata.get("annotations") or {}
    several = bool(devices.get("networkInterfaceMultiqueue"))
    is_root = not status.get("runtimeUser") and _NON_ROOT not in annotations
    return Request(
        uid=str(metadata.get("uid") or ""),
        networks=networks,
        interfaces=[interfaces[name] for one in networks if (name := one.get("name")) in interfaces],
        launcher_pid=launcher_pid,
        owner=0 if is_root else _NON_ROOT_USER,
        queues=min(_vcpus(domain), _MOST_QUEUES) if several else 0,
        statuses=status.get("interfaces") or (),
        plugins=config.network_bindings,
        pod_ip=pod_ip,
        istio=istio.is_enabled(annotations),
        legacy_migration_ports=status.get("migrationTransport") != _UNIX,
        port_ranges=config.gate(_PORT_RANGES),
    )


def _vcpus(domain: Mapping[str, Any]) -> int:
    """Without a topology, as many as the limit or the request of CPU says (``vcpu.go:297``)."""
    count = topology_vcpus(domain.get("cpu") or {})
    resources = domain.get("resources") or {}
    for kind in ("limits", "requests"):
        amount = (resources.get(kind) or {}).get("cpu")
        if not count and amount is not None:
            return Quantity.from_json(amount).value
    return count or 1
