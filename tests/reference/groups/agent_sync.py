"""``agent_sync``: all that the agent calls in one pass over a VMI, in order, and the status that it writes.

Nothing is left out: parts of the agent that do nothing yet are called all the same.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kvnode.agent.domain import Domain
from kvnode.agent.errors import FAILURES, AgentError, CriticalNetworkError, HotplugWaitingError
from kvnode.agent.execute import execute
from kvnode.agent.parts import LauncherState, Parts
from kvnode.agent.retry import BackoffLimiter, IoErrorRetry
from kvnode.kube.expectations import Expectations
from kvnode.rpc.errors import RpcError
from kvnode.spec.config import ClusterConfig
from tests.reference.common import Case, Outcome
from tests.reference.groups._agent import NOW, Clock, Recorder, conditions, domain, drive
from tests.reference.groups._agent_parts import (
    ContainerDisks,
    Hooks,
    Hotplug,
    Metrics,
    Network,
    Part,
    Proxy,
    Runtime,
)

KEY = "default/testvmi"
NODE = "node01"
STATES = {
    "ok": LauncherState.READY,
    "unresponsive": LauncherState.UNRESPONSIVE,
    "uninitialized": LauncherState.STARTING,
}


def run(case: Case) -> Outcome:
    """One pass; of a case in a series of passes, those before it as well."""
    world = World(case.data)
    for _ in range(_passes(case.data)):
        world.begin()
        failed = False
        try:
            drive(execute(KEY, world.parts))
        except FAILURES:
            failed = True
    got: dict[str, Any] = {
        "calls": _one_close(world.calls),
        "launcher_calls": [
            call.removeprefix("launcher.") for call in world.calls if call.startswith("launcher.")
        ],
        "returns_error": failed,
        "domain_still_cached": world.domain is not None,
    }
    if world.written is not None:
        got["updated_phase"] = str(world.written["status"].get("phase") or "")
        got["updated_conditions"] = conditions(world.written)
    names = ("calls", "launcher_calls", "returns_error", "domain_still_cached")
    names += ("updated_phase", "updated_conditions")
    want = {name: case.data[name] for name in names if name in case.data}
    return Outcome.of({**want, "calls": _one_close(want["calls"])}, got)


def _passes(row: dict[str, Any]) -> int:
    """The pass that a row is, in a series over the same input."""
    _, found, number = row.get("case", "").partition("-pass-")
    return int(number) if found else 1


def _one_close(calls: list[str]) -> list[str]:
    """A repeated ``launcherClients.Close`` counts once."""
    close = "launcherClients.Close"
    return [call for index, call in enumerate(calls) if call != close or close not in calls[:index]]


def _domain_of(row: dict[str, Any] | None) -> Domain | None:
    if row is None:
        return None
    metadata: dict[str, Any] = {"UID": row["uid"]}
    if grace := row.get("gracePeriod"):
        metadata["GracePeriod"] = {
            "DeletionGracePeriodSeconds": grace["deletionGracePeriodSeconds"],
            "MarkedForGracefulShutdown": grace.get("markedForGracefulShutdown"),
        }
        if "startedSecondsAgo" in grace:
            began = NOW - timedelta(seconds=grace["startedSecondsAgo"])
            metadata["GracePeriod"]["DeletionTimestamp"] = began.isoformat()
    if migration := row.get("migration"):
        metadata["Migration"] = {
            "StartTimestamp": NOW.isoformat() if migration["started"] else None,
            "EndTimestamp": NOW.isoformat() if migration["ended"] else None,
        }
    channel = {"Name": "org.qemu.guest_agent.0", "State": row.get("guest_agent_channel")}
    found = domain(
        row["status"],
        row["reason"],
        Features={"ACPI": {}} if row["acpi"] else {},
        Metadata={"KubeVirt": metadata},
        Devices={"Channels": [{"Target": channel}] if channel["State"] else []},
    )
    deleted = NOW.isoformat() if "deletionTimestamp" in row else None
    meta = {"namespace": "default", "name": "testvmi", "deletionTimestamp": deleted}
    return Domain({**found.raw, "ObjectMeta": meta})


def _failures(row: dict[str, Any]) -> dict[str, Exception]:
    """What each call fails with."""
    failures: dict[str, Exception] = {}
    for text in row.get("injected_errors") or ():
        call, _, message = text.partition(": ")
        failures[call] = _failure(call, message)
        if call == "net.Setup" and "critical" in f"{row.get('case')} {row.get('note')} {message}".casefold():
            failures[call] = CriticalNetworkError(message)
    return failures


def _failure(call: str, message: str) -> Exception:
    if "code = " in message:
        code = message.partition("code = ")[2].split()[0].upper()
        return RpcError(call, message, "CANCELLED" if code == "CANCELED" else code)
    if message == "EOF":
        return EOFError(message)
    if "connection reset" in message:
        return ConnectionResetError(message)
    if call == "hotplug.Mount" and message.startswith("waiting"):
        return HotplugWaitingError(message)
    if "file does not exist" in message:
        return FileNotFoundError(message)
    return AgentError(message)


class World:
    """The node, the cluster and the launcher that a row describes."""

    def __init__(self, row: dict[str, Any]):
        self._row = row
        self._failures = _failures(row)
        self.calls: list[str] = []
        self.vmi = row["vmi"]
        self.in_cluster = row["vmi"] or row.get("vmi_in_cluster_wide_store")
        self.domain = _domain_of(row["domain"])
        self.written: dict[str, Any] | None = None
        self.parts = self._parts()

    def begin(self) -> None:
        """Before a pass."""
        self.calls.clear()
        self.written = None
        self.parts.expectations.clear(KEY)
        if "expectation" in f"{self._row.get('case')} {self._row.get('note')}":
            self.parts.expectations.expect_creations(KEY, 1)

    def did(self, call: str, argument: str = "") -> None:
        """Write a call down, and fail as the row says."""
        self.calls.append(call + argument)
        if call in self._failures:
            raise self._failures[call]

    def _parts(self) -> Parts:
        gates = {"featureGates": self._row.get("feature_gates") or []}
        return Parts(
            node=NODE,
            architecture="amd64",
            host_cpu_model="",
            config=ClusterConfig.from_mapping({"developerConfiguration": gates}),
            vmis=Vmis(self),
            domains=Domains(self),
            ghosts=Ghosts(self._row),
            expectations=Expectations(lambda: 0.0),
            launchers=Launchers(self, self._row["launcher"]),
            api=Api(self, self._row),
            recorder=Recorder(self.calls),
            queue=Queue(self),
            disks=ContainerDisks(self, self._row),
            hotplug=Hotplug(self),
            network=Network(self),
            runtime=Runtime(self),
            proxy=Proxy(self),
            metrics=Metrics(self),
            hooks=Hooks(self),
            io_retry=IoErrorRetry(lambda: 0.0),
            sriov_limiter=BackoffLimiter(lambda: 0.0),
            clock=Clock(),
        )


class Vmis(Part):
    """The node's watch."""

    def get(self, _key):
        return self.world.vmi


class Domains(Part):
    """What launchers told of."""

    def get(self, _key):
        return self.world.domain

    def delete(self, _key):
        self.world.domain = None

    def heard(self, _kind, raw, _sender):
        self.world.domain = Domain(raw)

    async def deletion(self, _key, _seconds):
        """What the launcher tells then is not of these cases."""


class Ghosts:
    """Records on disk."""

    def __init__(self, row: dict[str, Any]):
        self._uid = "uid-1" if "ghost record exists" in row.get("note", "") else ""

    def last_known_uid(self, _key):
        return self._uid


class Api(Part):
    """The API server."""

    def __init__(self, world: World, row: dict[str, Any]):
        super().__init__(world)
        self._refuses = "API update fails" in row.get("note", "")

    async def read(self, _key):
        self.world.did("api.ReadVMI")
        return self.world.in_cluster

    async def write_status(self, _old, new):
        self.world.written = new
        self.world.did("api.UpdateVMI")
        if self._refuses:
            raise AgentError("the object has changed")


class Queue(Part):
    """What is put off."""

    def add_after(self, _key, delay):
        self.world.did("queue.AddAfter", f":{delay:g}s")

    def add_rate_limited(self, _key):
        self.world.did("queue.AddRateLimited")
        return 0.0


class Launchers(Part):
    """The one launcher there is, which answers as the row says."""

    def __init__(self, world: World, state: str):
        super().__init__(world)
        self._state = state

    async def state(self, _vmi):
        if self._state == "error":
            raise AgentError("some failure")
        return STATES[self._state]

    async def client(self, _vmi):
        if self._state not in ("ok", "unresponsive"):
            raise AgentError("no launcher")
        return Launcher(self.world)

    async def verified(self, _vmi):
        if self._state != "ok":
            raise AgentError("no launcher")
        return Launcher(self.world)

    def waiting_since(self, _vmi):
        return None if self._state == "uninitialized" else NOW

    async def close(self, _vmi):
        self.world.did("launcherClients.Close")


class Launcher(Part):
    """A connection to it."""

    async def sync(self, _vmi, _preallocated):
        self.world.did("launcher.SyncVirtualMachine")

    async def shutdown(self, _vmi):
        self.world.did("launcher.ShutdownVirtualMachine")

    async def kill(self, _vmi):
        self.world.did("launcher.KillVirtualMachine")

    async def delete(self, _vmi):
        self.world.did("launcher.DeleteVirtualMachine")

    async def domain(self):
        """The domain of the row is what was heard, and what there is."""
        return self.world.domain.raw if self.world.domain is not None else None

    async def guest_info(self):
        self.world.did("launcher.GetGuestInfo")
        return {}

    async def memory_dump(self, _vmi, _path):
        self.world.did("launcher.VirtualMachineMemoryDump")

    async def hotplug_host_devices(self, _vmi):
        self.world.did("launcher.HotplugHostDevices")
