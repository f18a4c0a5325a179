"""Of several processes, one leads: it holds a Lease and renews it.

Whoever waits does not trust the times in the Lease, which are another machine's: it takes the Lease for expired when
it has not seen it change for its duration by its own clock. Whoever leads stops in good time before that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kvnode.kube.client import Client
from kvnode.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from kvnode.kube.objects import Object, metadata, micro_timestamp, utc_now
from kvnode.kube.resources import LEASES

logger = logging.getLogger(__name__)

JITTER = 1.2


class LeadershipLost(Exception):  # noqa: N818 — what happened
    """Another may lead now: the process must end at once."""


@dataclass(frozen=True)
class LeaseSettings:
    """Which Lease, and its times (pkg/virt-controller/leaderelectionconfig/config.go:31)."""

    namespace: str
    name: str
    identity: str
    """Of this process, unlike all others; the pod's name serves."""
    duration: float = 15.0
    """Seconds without renewal after which others may take over."""
    renew_deadline: float = 10.0
    """Seconds without success after which the leader gives up; less than `duration`."""
    retry_period: float = 2.0
    """Seconds between tries."""

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("identity: must not be empty")
        if not self.duration > self.renew_deadline > self.retry_period * JITTER > 0:
            raise ValueError(
                f"duration {self.duration}, renew deadline {self.renew_deadline} and retry period "
                f"{self.retry_period} must fall in this order, the last by a fifth"
            )


class LeaderElector:
    """Takes part in one election."""

    def __init__(
        self,
        client: Client,
        settings: LeaseSettings,
        *,
        now: Callable[[], datetime] = utc_now,
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        """`now` is the time of day, for what the Lease shows to people; decisions are by the event loop's clock."""
        self._client = client
        self._settings = settings
        self._now = now
        self._random = random_unit
        self._seen: dict[str, Any] | None = None
        self._seen_at = 0.0
        self._lease: Object | None = None
        self.leading = False

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, then run ``lead`` for as long as it is held.

        When ``lead`` ends, or this is cancelled, it is given back, so that another can start at once.

        Raises:
            LeadershipLost: the Lease could not be renewed; ``lead`` has been cancelled.
        """
        renewed = await self._acquire()
        logger.info("%s: leading", self._settings.identity)
        self.leading = True
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.ensure_future(self._renew(renewed))
        lost = False
        try:
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
            lost = not leading.done()
        finally:
            self.leading = False
            for task in (leading, renewing):
                task.cancel()
            # Whatever clings to its work, this process must be gone before the Lease expires.
            grace = (self._settings.duration - self._settings.renew_deadline) / 2
            await asyncio.wait((leading, renewing), timeout=grace)
            error = leading.exception() if leading.done() and not leading.cancelled() else None
            if not leading.done():
                logger.error("%s: the work does not end", self._settings.identity)
            elif not lost:
                await self._release()
        if lost:
            raise LeadershipLost(
                f"lease {self._settings.namespace}/{self._settings.name} was not renewed in time"
            )
        if error is not None:
            raise error

    async def _acquire(self) -> float:
        """Wait until we lead; the answer is when the successful try began."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            if await self._try(self._settings.renew_deadline):
                return began
            await asyncio.sleep(self._settings.retry_period * (1 + (JITTER - 1) * self._random()))

    async def _renew(self, renewed: float) -> None:
        """Renew until it fails for too long; what counts is when the last try that succeeded began."""
        loop = asyncio.get_running_loop()
        pause = self._settings.retry_period
        while True:
            deadline = renewed + self._settings.renew_deadline
            await asyncio.sleep(min(pause, max(0.0, deadline - loop.time())))
            began = loop.time()
            if began >= deadline:
                return
            if await self._try(deadline - began):
                renewed, pause = began, self._settings.retry_period
            elif self._holder() not in ("", self._settings.identity):
                return  # another has it
            else:
                pause = self._settings.retry_period / 2  # time is running out

    async def _try(self, seconds: float) -> bool:
        """One try to take or renew the Lease, in so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                return await self._take_or_renew()
        except (TimeoutError, KubeError) as error:
            if not isinstance(error, (Conflict, AlreadyExists)):
                logger.warning("lease %s: %s", self._settings.name, error or "no answer in time")
            self._lease = None  # whatever became of it: look first
            return False

    async def _take_or_renew(self) -> bool:
        settings = self._settings
        if self.leading and self._lease is not None:
            # Nobody else may have written it: one call instead of two.
            with contextlib.suppress(Conflict):
                self._lease = await self._client.replace(LEASES, self._claimed(self._lease))
                self._saw(self._lease)
                return True
        try:
            lease = await self._client.get(LEASES, settings.name, settings.namespace)
        except NotFound:
            if self._is_held():
                return False  # somebody deleted it; whoever leads does not know yet
            meta = {"name": settings.name, "namespace": settings.namespace}
            fresh = self._claimed({"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta})
            self._lease = await self._client.create(LEASES, fresh)
            self._saw(self._lease)
            return True
        self._saw(lease)
        if self._is_held():
            return False
        self._lease = await self._client.replace(LEASES, self._claimed(lease))
        self._saw(self._lease)
        return True

    async def _release(self) -> None:
        if self._lease is None:
            return
        spec = {**_spec(self._lease), "holderIdentity": "", "leaseDurationSeconds": 1}
        spec["renewTime"] = micro_timestamp(self._now())
        with contextlib.suppress(KubeError, TimeoutError):
            async with asyncio.timeout(self._settings.retry_period):
                await self._client.replace(LEASES, {**self._lease, "spec": spec})
        self._lease = None

    def _claimed(self, lease: Object) -> Object:
        """The Lease, held by us from now on."""
        before = _spec(lease)
        now = micro_timestamp(self._now())
        ours = before.get("holderIdentity") == self._settings.identity
        transitions = before.get("leaseTransitions") or 0
        spec = {
            **before,
            "holderIdentity": self._settings.identity,
            "leaseDurationSeconds": int(self._settings.duration),
            "renewTime": now,
            "acquireTime": before.get("acquireTime") or now if ours else now,
            "leaseTransitions": transitions if ours or not metadata(lease).get("uid") else transitions + 1,
        }
        return {**lease, "spec": spec}

    def _saw(self, lease: Object) -> None:
        spec = _spec(lease)
        if spec != self._seen:
            self._seen = spec
            self._seen_at = asyncio.get_running_loop().time()

    def _holder(self) -> str:
        return str((self._seen or {}).get("holderIdentity") or "")

    def _is_held(self) -> bool:
        """Whether another may lead still."""
        return self._holder() not in ("", self._settings.identity) and not self._expired()

    def _expired(self) -> bool:
        promised = (self._seen or {}).get("leaseDurationSeconds")
        # Not less than ours, whoever wrote it: the leader goes by its own settings.
        duration = max(float(promised) if isinstance(promised, int) else 0.0, self._settings.duration)
        return asyncio.get_running_loop().time() - self._seen_at >= duration


def _spec(lease: Object) -> dict[str, Any]:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}
