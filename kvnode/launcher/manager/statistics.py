"""Statistics of the domain (``pkg/virt-launcher/virtwrap/cli/libvirt.go``, ``statsconv/converter.go``)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import libvirt

from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.manager.cache import TimedCache
from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.host import Host
from kvnode.virt.domain_json.shape import Struct
from kvnode.virt.payloads import stats

#: Seconds for which statistics are kept, and the measure of dirtied memory.
KEPT_SECONDS, DIRTY_KEPT_SECONDS = 3.25, 3.0

_KINDS = (
    libvirt.VIR_DOMAIN_STATS_BALLOON
    | libvirt.VIR_DOMAIN_STATS_CPU_TOTAL
    | libvirt.VIR_DOMAIN_STATS_VCPU
    | libvirt.VIR_DOMAIN_STATS_INTERFACE
    | libvirt.VIR_DOMAIN_STATS_BLOCK
    | libvirt.VIR_DOMAIN_STATS_DIRTYRATE
)
_ALIVE = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_RUNNING | libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_PAUSED
_MEASURED = 2  # VIR_DOMAIN_DIRTYRATE_MEASURED

# Field of a table to libvirt's name of it.
_CPU = {"Time": "time", "User": "user", "System": "system"}
_VCPU = {"State": "state", "Time": "time", "Wait": "wait", "Delay": "delay"}
_NET = {
    "Name": "name",
    "RxBytes": "rx.bytes",
    "RxPkts": "rx.pkts",
    "RxErrs": "rx.errs",
    "RxDrop": "rx.drop",
    "TxBytes": "tx.bytes",
    "TxPkts": "tx.pkts",
    "TxErrs": "tx.errs",
    "TxDrop": "tx.drop",
}
_BLOCK = {
    "Name": "name",
    "BackingIndex": "backingIndex",
    "Path": "path",
    "RdReqs": "rd.reqs",
    "RdBytes": "rd.bytes",
    "RdTimes": "rd.times",
    "WrReqs": "wr.reqs",
    "WrBytes": "wr.bytes",
    "WrTimes": "wr.times",
    "FlReqs": "fl.reqs",
    "FlTimes": "fl.times",
    "Errors": "errors",
    "Allocation": "allocation",
    "Capacity": "capacity",
    "Physical": "physical",
}
_MEMORY = {
    "Unused": "unused",
    "Cached": "disk_caches",
    "Available": "available",
    "ActualBalloon": "actual",
    "RSS": "rss",
    "SwapIn": "swap_in",
    "SwapOut": "swap_out",
    "MajorFault": "major_fault",
    "MinorFault": "minor_fault",
    "Usable": "usable",
}
_DIRTY = {
    "CalcStatus": "calc_status",
    "CalcStartTime": "calc_start_time",
    "CalcPeriod": "calc_period",
    "MegabytesPerSecond": "megabytes_per_second",
}


class Statistics:
    """The statistics of a domain, gathered when somebody asks and then kept for some seconds."""

    def __init__(self, host: Host, agent: AgentStore) -> None:
        """Measure the domain of ``host``."""
        self._host = host
        self._agent = agent
        self.aliases: Mapping[str, str] = {}
        """Target device of a disk or interface to the name that the VMI gives it."""

        self._domain = TimedCache(KEPT_SECONDS, self._gather)
        self._dirty = TimedCache(DIRTY_KEPT_SECONDS, self._measure)
        self._dirty_seconds = 1.0

    async def domain(self) -> dict[str, Any]:
        """``stats.DOMAIN_STATS``; raises ManagerError when no guest runs."""
        return await self._domain.get()

    async def dirty_rate(self, seconds: float) -> int | None:
        """Megabytes of memory a second, measured for at least one second; None when libvirt gave none."""
        self._dirty_seconds = max(1.0, seconds)
        return (await self._dirty.get())[0]

    async def _gather(self) -> dict[str, Any]:
        made = await self._host.call(self._read)
        made["Load"] = self._agent.load_stats()
        for part in (made["Net"], made["Block"]):
            for entry in part:
                alias = self.aliases.get(entry["Name"])
                if alias is not None and "AliasSet" in entry:
                    entry["AliasSet"] = True
                if alias is not None:
                    entry["Alias"] = alias
        return made

    def _read(self) -> dict[str, Any]:
        found = self._host.connection.raw.getAllDomainStats(_KINDS, _ALIVE)
        for domain, values in found:
            if domain.name() == self._host.options.domain:
                return domain_stats(
                    domain.name(),
                    domain.UUIDString(),
                    values,
                    domain.memoryStats(),
                    domain.vcpuPinInfo(libvirt.VIR_DOMAIN_AFFECT_CURRENT),
                )
        raise ManagerError("no guest is running that there could be statistics of")

    async def _measure(self) -> tuple[int | None]:
        seconds = self._dirty_seconds
        await self._host.call(lambda: self._host.domain().startDirtyRateCalc(int(seconds), 0))
        await asyncio.sleep(seconds)
        until = time.monotonic() + 1.0
        while True:
            values = await self._host.call(self._dirty_values)
            if values.get("dirtyrate.calc_status") == _MEASURED:
                return (values.get("dirtyrate.megabytes_per_second"),)
            if time.monotonic() > until:
                raise ManagerError("libvirt has not finished measuring the dirty rate")
            await asyncio.sleep(0.1)

    def _dirty_values(self) -> Mapping[str, Any]:
        connection, kind = self._host.connection.raw, libvirt.VIR_DOMAIN_STATS_DIRTYRATE
        found = connection.domainListGetStats([self._host.domain()], kind, 0)
        values: Mapping[str, Any] = found[0][1] if found else {}
        return values


def domain_stats(
    name: str,
    uuid: str,
    values: Mapping[str, Any],
    memory: Mapping[str, int],
    pins: list[tuple[bool, ...]] | None,
) -> dict[str, Any]:
    """libvirt's statistics of a domain as ``stats.DOMAIN_STATS``.

    ``values`` are of virConnectGetAllDomainStats, ``memory`` of virDomainMemoryStats, ``pins`` of
    virDomainGetVcpuPinInfo.
    """
    held = _measured(stats.MEMORY, _MEMORY, memory.get)
    if "balloon.current" in values:
        held.update(TotalSet=True, Total=values["balloon.current"])
    return stats.DOMAIN_STATS.make(
        Name=name,
        UUID=uuid,
        Cpu=_measured(stats.CPU, _CPU, _under(values, "cpu.")),
        Memory=held,
        MigrateDomainJobInfo=stats.JOB.zero(),
        Vcpu=_each(stats.VCPU, _VCPU, values, "vcpu", "maximum"),
        Net=_each(stats.NET, _NET, values, "net", "count"),
        Block=_each(stats.BLOCK, _BLOCK, values, "block", "count"),
        CPUMapSet=True,
        CPUMap=[list(pin) for pin in pins or []] or None,
        DirtyRate=_measured(stats.DIRTY_RATE, _DIRTY, _under(values, "dirtyrate.")),
    )


def _under(values: Mapping[str, Any], prefix: str) -> Callable[[str], Any]:
    return lambda name: values.get(prefix + name)


def _measured(struct: Struct, names: Mapping[str, str], value_of: Callable[[str], Any]) -> dict[str, Any]:
    """A structure with each value that libvirt gave, and the mark that it did."""
    made = struct.zero()
    for field, source in names.items():
        value = value_of(source)
        if value is not None:
            made[field] = value
            made[f"{field}Set"] = True
    return made


def _each(
    struct: Struct, names: Mapping[str, str], values: Mapping[str, Any], prefix: str, counter: str
) -> list[dict[str, Any]]:
    """One structure for each of libvirt's numbered entries."""
    count = int(values.get(f"{prefix}.{counter}", 0))
    return [_measured(struct, names, _under(values, f"{prefix}.{number}.")) for number in range(count)]
