"""Tell users what happened to an object, as Events that kubectl shows."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from kvnode.kube.backoff import Backoff
from kvnode.kube.client import Client, PatchType
from kvnode.kube.correlation import Correlator, Occurrence, Subject
from kvnode.kube.errors import AlreadyExists, ApiError, ConnectionFailed, KubeError, NotFound
from kvnode.kube.objects import Object, metadata, timestamp, uid_of, utc_now
from kvnode.kube.resources import EVENTS

logger = logging.getLogger(__name__)

NORMAL = "Normal"
WARNING = "Warning"
BACKLOG = 1000
"""Events that wait to be written; more are dropped."""
LONGEST_MESSAGE = 1024
"""Characters of a message that the API server takes."""
TRIES = 12
"""How often one is written while the API server is away or in trouble; with the waits between, some four minutes."""


@dataclass(slots=True)
class _Waiting:
    subject: Subject
    api_version: str
    resource_version: str
    occurrence: Occurrence
    moment: datetime
    """When it last happened."""
    name: str = ""
    """Of the Event object that may have been made, though no answer said so."""


class EventRecorder:
    """Writes events, in the background: recording never waits and never fails."""

    def __init__(
        self,
        client: Client,
        component: str,
        host: str = "",
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """`component` is who reports (`virt-controller`), `host` the node that it reports from.

        To be made inside the event loop, whose clock decides what repeats.
        """
        self._client = client
        self._component = component
        self._host = host
        self._now = now
        self._correlator = Correlator(asyncio.get_running_loop().time)
        self._waiting: deque[_Waiting] = deque()
        self._pending: dict[int, _Waiting] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.dropped = 0
        """Events that were not written, for any reason."""

    def record(self, obj: Object, kind: str, reason: str, message: str) -> None:
        """Something happened to ``obj``: `kind` is NORMAL or WARNING, `reason` one word."""
        meta = metadata(obj)
        subject = Subject(
            str(obj.get("kind", "")),
            str(meta.get("namespace") or ""),
            str(meta.get("name", "")),
            uid_of(obj),
            kind,
            reason,
        )
        occurrence = self._correlator.correlate(subject, message[:LONGEST_MESSAGE])
        if occurrence is None:
            self.dropped += 1
            return
        if (pending := self._pending.get(id(occurrence))) is not None:
            pending.moment = self._now()
            return  # it is written with its newest count anyway
        if len(self._waiting) >= BACKLOG:
            self.dropped += 1
            return
        version = str(meta.get("resourceVersion") or "")
        waiting = _Waiting(subject, str(obj.get("apiVersion", "")), version, occurrence, self._now())
        self._pending[id(occurrence)] = waiting
        self._waiting.append(waiting)
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        """Write what is recorded until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                waiting = self._waiting.popleft()
                del self._pending[id(waiting.occurrence)]
                try:
                    await self._deliver(waiting)
                except KubeError as error:
                    self.dropped += 1
                    logger.warning("event %s for %s: %s", waiting.subject.reason, waiting.subject.name, error)
            self._idle.set()

    async def _deliver(self, waiting: _Waiting) -> None:
        """Write it, again and again while the API server is away: what happened then must not be lost."""
        backoff = Backoff(1.0, 30.0, jitter=0.2)
        while True:
            try:
                await self._write(waiting)
            except KubeError as error:
                if not _may_pass(error) or backoff.failures == TRIES - 1:
                    raise
                await asyncio.sleep(backoff.next())
            else:
                return

    async def flush(self, seconds: float = 5.0) -> None:
        """Wait until all is written that was recorded, but not longer than so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    async def _write(self, waiting: _Waiting) -> None:
        occurrence = waiting.occurrence
        namespace = waiting.subject.namespace or "default"
        if occurrence.name:
            patch: Object = {
                "count": occurrence.count,
                "lastTimestamp": timestamp(waiting.moment),
                "message": occurrence.message,
            }
            try:
                await self._client.patch(EVENTS, occurrence.name, namespace, patch, PatchType.MERGE)
            except NotFound:  # events live an hour
                occurrence.count, occurrence.first, occurrence.name = 1, "", ""
            else:
                return
        # Nanoseconds keep two of one object apart, as in the reference's names.
        waiting.name = waiting.name or (
            f"{waiting.subject.name[:230]}.{int(self._now().timestamp() * 1e9):x}{id(occurrence) & 0xFFF:03x}"
        )
        occurrence.first = occurrence.first or timestamp(waiting.moment)
        with contextlib.suppress(AlreadyExists):  # made by a try whose answer did not come
            await self._client.create(EVENTS, self._event(waiting, namespace))
        occurrence.name = waiting.name

    def _event(self, waiting: _Waiting, namespace: str) -> Object:
        subject, occurrence = waiting.subject, waiting.occurrence
        involved = {
            "apiVersion": waiting.api_version,
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
            "resourceVersion": waiting.resource_version,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": waiting.name, "namespace": namespace},
            "involvedObject": {name: value for name, value in involved.items() if value},
            "type": subject.type,
            "reason": subject.reason,
            "message": occurrence.message,
            "source": {"component": self._component, **({"host": self._host} if self._host else {})},
            "firstTimestamp": occurrence.first,
            "lastTimestamp": timestamp(waiting.moment),
            "count": occurrence.count,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }


def _may_pass(error: KubeError) -> bool:
    """Whether the same may be taken later."""
    if isinstance(error, ApiError):
        return error.status == 429 or error.status >= 500
    return isinstance(error, ConnectionFailed)
