"""Where launchers tell their news: one notify server for each, inside the launcher's own root.

The reference proxies all of them to one server and believes what is in a message (``notify-server/pipe/pipe.go``,
``notify-server/server.go:54-124``). Here each has a server of its own, so that who speaks is known: a launcher that
lies can do so about its own VM alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from kvnode.agent.domains import DomainStore
from kvnode.agent.errors import AgentError
from kvnode.agent.ghost import Ghost
from kvnode.agent.parts import Recorder, Vmis
from kvnode.agent.rootfs import open_in_root, path_of
from kvnode.agent.vmi import Vmi, reference, uid_of
from kvnode.rpc.notify import ADDED, DELETED, ERROR, MODIFIED, bind_notify
from kvnode.rpc.notify_v1_pb2 import DomainEventRequest, K8sEventRequest
from kvnode.rpc.server import Server
from kvnode.virt.domain_json import DomainFormatError, decode_domain

logger = logging.getLogger(__name__)

FOLDER, SOCKET = "/var/run/kubevirt", "domain-notify-pipe.sock"
AT_ONCE = 8
"""Messages of a launcher that are heard at a time: what is more must not fill the agent."""
LARGEST = 1 << 20
"""Bytes that each may have: the domain of a VM with hundreds of disks has less."""
_KINDS = ("Normal", "Warning")
_LONGEST_REASON = 128


class Listener:
    """Hears one launcher."""

    def __init__(self, ghost: Ghost, domains: DomainStore, vmis: Vmis, recorder: Recorder) -> None:
        """`ghost` is the launcher that speaks."""
        self._ghost = ghost
        self._domains = domains
        self._vmis = vmis
        self._recorder = recorder

    async def domain_event(self, request: DomainEventRequest) -> None:
        """A domain changed; raises ValueError for what cannot be believed."""
        if request.eventType == ERROR:
            logger.warning("%s: the launcher tells of an error: %.500s", self._ghost.key, request.statusJSON)
            return
        if request.eventType not in (ADDED, MODIFIED, DELETED):
            raise ValueError(
                f"eventType: {request.eventType!r} is none of ADDED, MODIFIED, DELETED and ERROR"
            )
        try:
            domain = decode_domain(request.domainJSON)
            self._domains.heard(request.eventType, domain, self._ghost)
        except (DomainFormatError, AgentError) as error:
            logger.warning("%s: news of the launcher are not taken: %s", self._ghost.key, error)
            raise ValueError(f"domainJSON: {error}") from None

    async def k8s_event(self, request: K8sEventRequest) -> None:
        """Something is to be recorded about the launcher's VMI; raises ValueError for another's."""
        event = _mapping(request.eventJSON, "eventJSON")
        about = event.get("involvedObject")
        about = about if isinstance(about, dict) else {}
        ghost = self._ghost
        known = (ghost.namespace, ghost.name, ghost.uid)
        if (about.get("namespace"), about.get("name"), about.get("uid")) != known:
            raise ValueError(f"involvedObject: the launcher of {ghost.key} may tell of its own VM only")
        kind, reason = event.get("type"), event.get("reason")
        if kind not in _KINDS or not isinstance(reason, str) or not 0 < len(reason) <= _LONGEST_REASON:
            raise ValueError("type must be Normal or Warning, and reason a word")
        self._recorder.event(self._vmi(), str(kind), reason, str(event.get("message") or ""))

    def _vmi(self) -> Vmi:
        ghost = self._ghost
        found = self._vmis.get(ghost.key)
        if found is not None and uid_of(found) != ghost.uid:
            raise ValueError(f"VMI {ghost.key} of UID {ghost.uid} is not there any more")
        return found or reference(ghost.namespace, ghost.name, ghost.uid)


class Pipe:
    """The server for one launcher."""

    def __init__(self, listener: Listener) -> None:
        """Nothing is opened yet."""
        self._listener = listener
        self._folder = -1
        self._server: Server | None = None

    async def start(self, root: Path, owner: tuple[int, int]) -> None:
        """Serve in the launcher's root, for its user and group; a socket of an earlier agent is replaced.

        Raises:
            AgentError: the socket cannot be made.
        """
        try:
            self._folder = open_in_root(root, FOLDER, os.O_RDONLY | os.O_DIRECTORY)
            server = Server(path_of(self._folder) / SOCKET, bind_notify(self._listener), AT_ONCE, LARGEST)
            await server.start(owner)
            self._server = server
        except OSError as error:
            raise AgentError(
                f"the launcher's {FOLDER}/{SOCKET} cannot be made: {error.strerror or error}"
            ) from error
        finally:
            if self._server is None:
                self._close_folder()

    async def stop(self) -> None:
        """Hear no more of it."""
        server, self._server = self._server, None
        if server is not None:
            try:
                await server.stop(0)
            except OSError as error:
                logger.info("socket of a launcher that is gone: %s", error)
            finally:
                self._close_folder()
        else:
            self._close_folder()

    def _close_folder(self) -> None:
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


def _mapping(text: bytes, what: str) -> Mapping[str, Any]:
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads(text)
        if isinstance(found, dict):
            return found
    raise ValueError(f"{what}: must be a JSON object")
