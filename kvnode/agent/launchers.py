"""The connections to this node's launchers (``pkg/virt-handler/launcher-clients/launcher-clients.go:81-162``)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from kvnode.agent.errors import FAILURES, AgentError
from kvnode.agent.ghost import Ghost
from kvnode.agent.ghosts import GhostRecords
from kvnode.agent.parts import LauncherState
from kvnode.agent.peers import Peer, peer_of
from kvnode.agent.pipes import Pipe
from kvnode.agent.processes import Household, household_of
from kvnode.agent.sockets import Pinned, Sockets, is_socket
from kvnode.agent.vmi import Vmi, key_of, metadata, uid_of
from kvnode.agent.watchdog import LauncherStates
from kvnode.rpc.cmd import CmdClient
from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions
from kvnode.rpc.errors import RpcError
from kvnode.virt.domain_json import DomainFormatError, decode_domain

logger = logging.getLogger(__name__)

OptionsFor = Callable[[Vmi, Sequence[str]], VirtualMachineOptions]
"""What a launcher is told beside the VMI, given the names of preallocated volumes."""


@dataclass(slots=True)
class Connection:
    """A launcher that can be spoken to."""

    ghost: Ghost
    rpc: CmdClient
    peer: Peer
    root: Path
    """Root file system of the launcher."""
    household: Household
    pipe: Pipe
    options: OptionsFor
    socket: Pinned

    @property
    def pid(self) -> int:
        """PID of the launcher; raises AgentError when it has ended, and the number may be another's."""
        if not self.peer.held.lives():
            raise AgentError(f"{self.ghost.key}: the launcher (PID {self.peer.pid}) has ended")
        return self.peer.pid

    @property
    def proc(self) -> Path:
        """Its folder in /proc, good as long as this object is kept."""
        return self.peer.proc

    async def sync(self, vmi: Vmi, preallocated: Sequence[str]) -> None:
        """SyncVirtualMachine."""
        await self.rpc.sync(orjson.dumps(vmi), self.options(vmi, preallocated))

    async def shutdown(self, vmi: Vmi) -> None:
        """ShutdownVirtualMachine."""
        await self.rpc.vmi_command("ShutdownVirtualMachine", orjson.dumps(vmi))

    async def kill(self, vmi: Vmi) -> None:
        """KillVirtualMachine."""
        await self.rpc.vmi_command("KillVirtualMachine", orjson.dumps(vmi))

    async def delete(self, vmi: Vmi) -> None:
        """DeleteVirtualMachine."""
        await self.rpc.vmi_command("DeleteVirtualMachine", orjson.dumps(vmi))

    async def guest_info(self) -> Mapping[str, Any]:
        """GetGuestInfo."""
        text = await self.rpc.guest_info()
        try:
            found = orjson.loads(text or "{}")
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise RpcError("GetGuestInfo", "the launcher's answer is no JSON object")
        return found

    async def memory_dump(self, vmi: Vmi, path: str) -> None:
        """VirtualMachineMemoryDump."""
        await self.rpc.memory_dump(orjson.dumps(vmi), path)

    async def hotplug_host_devices(self, vmi: Vmi) -> None:
        """HotplugHostDevices."""
        await self.rpc.vmi_command("HotplugHostDevices", orjson.dumps(vmi))

    async def domain(self) -> Mapping[str, Any] | None:
        """The domain as the launcher has it; None when it has none. Raises one of `errors.FAILURES`."""
        text = await self.rpc.domain()
        try:
            return None if text is None else decode_domain(text)
        except DomainFormatError as error:
            raise RpcError("GetDomain", f"the launcher's answer is no domain: {error}") from None

    async def close(self) -> None:
        """Hang up."""
        await self.pipe.stop()
        await self.rpc.close()
        self.socket.close()


class NodeLaunchers:
    """All of them. A launcher is dialled once, however many want it."""

    def __init__(
        self,
        sockets: Sockets,
        states: LauncherStates,
        ghosts: GhostRecords,
        *,
        options: OptionsFor,
        pipe_for: Callable[[Ghost], Pipe],
        root_of: Callable[[Peer], Path] = lambda peer: peer.root,
    ) -> None:
        """`root_of` gives the root file system of the process at a launcher's socket."""
        self._sockets = sockets
        self._states = states
        self._ghosts = ghosts
        self._options = options
        self._pipe_for = pipe_for
        self._root_of = root_of
        self._connections: dict[str, Connection] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def state(self, vmi: Vmi) -> LauncherState:
        """Whether the VMI's launcher can be expected to answer."""
        return self._states.state(vmi)

    def waiting_since(self, vmi: Vmi) -> datetime | None:
        """When the launcher was first looked for; None when it never was."""
        return self._states.waiting_since(vmi)

    async def client(self, vmi: Vmi) -> Connection:
        """A connection to it, made when there is none."""
        uid = uid_of(vmi)
        known = self.known(uid)
        if known is not None:
            return known
        namespace, name = str(metadata(vmi).get("namespace") or ""), str(metadata(vmi).get("name") or "")
        socket = self._sockets.find(vmi) if uid else None
        if socket is not None:
            return await self.open(Ghost(namespace, name, uid, str(socket)))
        # Of a VMI whose object is gone nothing is left but the record.
        for ghost in self._ghosts:
            if ghost.key == key_of(vmi) and ghost.uid == uid and is_socket(Path(ghost.socket)):
                return await self.open(ghost)
        raise AgentError(f"{key_of(vmi)}: there is no command socket of a launcher on this node")

    async def verified(self, vmi: Vmi) -> Connection:
        """A connection that has just answered a Ping."""
        found = await self.client(vmi)
        await found.rpc.ping()
        return found

    async def open(self, ghost: Ghost) -> Connection:
        """Record the launcher, dial it, and hear it from then on.

        Raises one of `errors.FAILURES`; a record that was made for it is dropped again then.
        """
        async with self._locks.setdefault(ghost.uid, asyncio.Lock()):
            known = self.known(ghost.uid)
            if known is not None:
                return known
            if (old := self._connections.pop(ghost.uid, None)) is not None:
                logger.info("%s: another socket is in the place of the launcher's", ghost.key)
                await old.close()
            is_new = all(one != ghost for one in self._ghosts)
            await self._ghosts.add(ghost, answers)
            try:
                found = await self._dial(ghost)
                await self._note(found)
            except FAILURES:
                if is_new:
                    self._ghosts.delete(ghost.key)
                raise
            self._connections[ghost.uid] = found
            return found

    def known(self, uid: str) -> Connection | None:
        """The connection to the launcher of a VMI, if there is one and it is to the socket that is there now."""
        found = self._connections.get(uid)
        return None if found is None or found.socket.was_replaced() else found

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._connections.values()))

    async def hang_up(self) -> None:
        """Close all connections and keep all records: the agent ends, the VMs do not."""
        for found in self:
            await found.close()
        self._connections.clear()

    async def close(self, vmi: Vmi) -> None:
        """Close the connection and drop the record of the socket."""
        uid = uid_of(vmi)
        async with self._locks.setdefault(uid, asyncio.Lock()):
            found = self._connections.pop(uid, None)
            if found is not None:
                await found.close()
        self._locks.pop(uid, None)
        self._states.forget(vmi)
        if self._ghosts.last_known_uid(key_of(vmi)) == uid:
            self._ghosts.delete(key_of(vmi))

    async def _note(self, found: Connection) -> None:
        """Record the launcher's processes too. Without them it can be spoken to all the same."""
        try:
            await self._ghosts.add(found.ghost, answers, found.household)
        except AgentError as error:
            logger.warning("%s", error)

    def household(self, uid: str) -> Household | None:
        """The processes of a VMI's launcher, as they were last seen, if they were by this agent or one before it."""
        known = self.known(uid)
        return known.household if known is not None else self._ghosts.household(uid)

    async def _dial(self, ghost: Ghost) -> Connection:
        async with contextlib.AsyncExitStack() as undo:
            shown = Path(ghost.socket)
            socket = undo.enter_context(Pinned(shown))
            peer = await peer_of(socket.path, shown=shown)
            rpc = await CmdClient.open(socket.path, shown=shown)
            undo.push_async_callback(rpc.close)
            pipe, root = self._pipe_for(ghost), self._root_of(peer)
            await pipe.start(root, (peer.uid, peer.gid))
            undo.pop_all()
        return Connection(ghost, rpc, peer, root, household_of(peer.pid), pipe, self._options, socket)


async def answers(socket: str) -> bool:
    """Whether a launcher answers at a socket."""
    try:
        with Pinned(Path(socket)) as found:
            client = await CmdClient.open(found.path)
            await client.close()
    except FAILURES:
        return False
    return True
