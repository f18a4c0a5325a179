"""A launcher that is none: it speaks cmd.v1 on a real socket, and notify.v1 to its agent, and runs no guest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from kvnode.rpc.cmd import bind_cmd
from kvnode.rpc.cmd_v1_pb2 import DomainResponse, DomainStatsResponse, GuestInfoResponse, Response
from kvnode.rpc.errors import RpcError
from kvnode.rpc.notify import NotifyClient
from kvnode.rpc.server import Server
from kvnode.virt.domain_json import encode_domain, make_metadata, make_status, new_domain

OK = Response(success=True)


class StandIn:
    """One launcher, in its pod's folder below `pods`, with a root file system of its own."""

    def __init__(self, pods: Path, root: Path, pod_uid: str, vmi: dict[str, Any]) -> None:
        self.socket = pods / pod_uid / "volumes/kubernetes.io~empty-dir/sockets/launcher-sock"
        self.root = root
        about = vmi["metadata"]
        self.namespace, self.name, self.uid = about["namespace"], about["name"], about["uid"]
        self.state: tuple[str, str] | None = None
        self.calls: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.cards: Sequence[dict[str, Any]] = ()
        """The domain's interfaces."""
        self.told: Sequence[dict[str, Any]] = ()
        """Those that the guest tells of."""
        self.failure = ""
        self.silent = asyncio.Event()
        self.silent.set()
        (root / "var/run/kubevirt").mkdir(parents=True, exist_ok=True)
        handlers: dict[str, Callable[[Any, Any], Awaitable[Any]]] = {
            "SyncVirtualMachine": self._sync,
            "ShutdownVirtualMachine": self._command("shutdown", ("ShuttingDown", "")),
            "KillVirtualMachine": self._command("kill", ("Shutoff", "Destroyed")),
            "DeleteVirtualMachine": self._command("delete", None),
            "Ping": self._ping,
            "GetDomain": self._domain,
            "GetGuestInfo": self._guest_info,
            "GetDomainStats": self._stats,
        }
        self._server = Server(self.socket, bind_cmd(handlers))

    async def start(self) -> None:
        """Listen."""
        await self._server.start()

    async def stop(self) -> None:
        """End, as a launcher whose pod is deleted."""
        await self._server.stop(0)

    def domain(self) -> str:
        """The domain's JSON."""
        status, reason = self.state or ("", "")
        domain = new_domain(
            self.namespace,
            self.name,
            metadata=make_metadata(UID=self.uid),
            status=make_status(Status=status, Reason=reason),
        )
        if self.cards:
            domain["Spec"]["Devices"]["Interfaces"] = list(self.cards)
        if self.told:
            domain["Status"]["Interfaces"] = list(self.told)
        return encode_domain(domain)

    async def tell(self, kind: str, domain: str | None = None) -> None:
        """Send a domain event to the agent."""
        pipe = self.root / "var/run/kubevirt/domain-notify-pipe.sock"
        async with asyncio.timeout(60):
            while not pipe.exists():
                await asyncio.sleep(0.01)
        client = await NotifyClient.open(pipe)
        try:
            await client.domain_event(kind, (domain or self.domain()).encode())
        finally:
            await client.close()

    async def tell_event(self, **about: Any) -> None:
        """Send a Kubernetes event to the agent, about its own VMI but for ``about``."""
        mine = {"namespace": self.namespace, "name": self.name, "uid": self.uid, **about}
        event = {"involvedObject": mine, "type": "Normal", "reason": "Played", "message": "m"}
        client = await NotifyClient.open(self.root / "var/run/kubevirt/domain-notify-pipe.sock")
        try:
            await client.k8s_event(json.dumps(event).encode())
        finally:
            await client.close()

    async def become(self, status: str, reason: str = "") -> None:
        """Have the domain come into a state, and tell of it."""
        first = self.state is None
        self.state = (status, reason)
        await self.tell("ADDED" if first else "MODIFIED")

    async def _sync(self, request: Any, _context: object) -> Response:
        self.calls.append("sync")
        self.asked.append(json.loads(request.vmi.vmiJson))
        if self.failure:
            return Response(success=False, message=self.failure)
        if self.state is None:
            self.state = ("Running", "Unknown")
        return OK

    def _command(self, name: str, after: tuple[str, str] | None) -> Callable[[Any, Any], Awaitable[Response]]:
        async def command(_request: object, _context: object) -> Response:
            self.calls.append(name)
            self.state = after
            return OK

        return command

    async def _ping(self, _request: object, _context: object) -> Response:
        await self.silent.wait()
        return OK

    async def _domain(self, _request: object, _context: object) -> DomainResponse:
        await self.silent.wait()
        if self.failure == "domain":
            raise RpcError("GetDomain", "played")
        domain = self.domain() if self.state is not None else ""
        return DomainResponse(response=OK, domain=domain)

    async def _stats(self, _request: object, _context: object) -> DomainStatsResponse:
        cpu = {"TimeSet": True, "Time": 2_500_000_000}
        stats = {"Name": self.name, "Cpu": cpu, "Memory": {"RSSSet": True, "RSS": 64, "Unused": 5}}
        return DomainStatsResponse(response=OK, domainStats=json.dumps(stats))

    async def _guest_info(self, _request: object, _context: object) -> GuestInfoResponse:
        return GuestInfoResponse(response=OK, guestInfoResponse="")
