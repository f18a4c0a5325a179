"""List a collection and follow it, for ever.

The list is taken page by page; then a watch tells what changes, and is resumed where it ended. When the server no
longer has that place (410, as an answer or as an event) the list is taken again, and whoever follows is given it
whole: what is not in it was deleted meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Protocol

from kvnode.kube.backoff import Backoff
from kvnode.kube.client import Client
from kvnode.kube.errors import ApiError, Expired, KubeError
from kvnode.kube.objects import Object, metadata
from kvnode.kube.resources import Resource
from kvnode.kube.watch import Event, watch

logger = logging.getLogger(__name__)

SHORTEST_WATCH = 300
"""Seconds; a watch lasts this long and up to twice as long, so that not all end together."""
STABLE = 10.0
"""A watch that lasted so many seconds was in order, even if nothing happened in it."""


class Follower(Protocol):
    """Who is told."""

    def begin(self, resource_version: str) -> None:
        """A new list begins, of this version."""
        ...

    def listed(self, obj: Object) -> None:
        """An object of the list."""
        ...

    def complete(self, resource_version: str) -> None:
        """The list is whole: what is known beyond it is gone."""
        ...

    def happened(self, event: Event) -> None:
        """An event after the list."""
        ...


class Reflector:
    """Follows one collection."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        follower: Follower,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        """`random_unit` gives numbers from 0 to 1."""
        self._client = client
        self._resource = resource
        self._follower = follower
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._random = random_unit
        self._backoff = Backoff(0.5, 30.0, jitter=0.5, random_unit=random_unit)
        self._version = ""
        self.synced = asyncio.Event()
        """Set when the first list is whole."""
        self.failure: KubeError | None = None
        """Why nothing can be followed now; none when all is well."""
        self.lists = 0
        """How many lists were begun."""
        self.watches = 0
        """How many watches were begun."""
        self.recovered: Callable[[], None] = lambda: None
        """Called when all can be followed again after it could not."""

    async def run(self) -> None:
        """Follow until cancelled; every failure is waited out."""
        while True:
            began = asyncio.get_running_loop().time()
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Expired as error:
                logger.info("%s: listed again: %s", self._resource, error.message)
                self._version = ""
                # A server that finds every version too old must not be asked without pause.
                if asyncio.get_running_loop().time() - began < STABLE:
                    await self._pause(None)
            except KubeError as error:
                if asyncio.get_running_loop().time() - began > STABLE:
                    self._backoff.reset()
                if isinstance(error, ApiError) and error.status in (400, 500, 504):
                    self._version = ""  # such as a version that a restored server has not reached yet
                await self._pause(error)

    async def _pause(self, error: KubeError | None) -> None:
        delay = self._backoff.next()
        if error is not None:
            if self.failure is None:
                logger.warning("%s: cannot be followed: %s", self._resource, error)
            self.failure = error
        await asyncio.sleep(delay)

    async def _list(self) -> None:
        self.lists += 1
        version = ""
        pages = self._client.pages(
            self._resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        async for page in pages:
            if not version:
                version = str(metadata(page).get("resourceVersion") or "")
                self._follower.begin(version)
            for obj in page.get("items") or ():
                # Lists leave out what is the same for all of their items.
                obj.setdefault("apiVersion", self._resource.api_version)
                obj.setdefault("kind", self._resource.kind)
                self._follower.listed(obj)
        self._follower.complete(version)
        self._version = version
        self.synced.set()

    def _opened(self) -> None:
        if self.failure is not None:
            logger.info("%s: followed again", self._resource)
            self.failure = None
            self.recovered()

    async def _watch(self) -> None:
        """One watch, to its end."""
        self.watches += 1
        seconds = int(SHORTEST_WATCH * (1 + self._random()))
        began = asyncio.get_running_loop().time()
        events = watch(
            self._client,
            self._resource,
            self._version,
            namespace=self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            seconds=seconds,
            opened=self._opened,
        )
        try:
            async for event in events:
                self._backoff.reset()
                self._follower.happened(event)
                version = metadata(event.object).get("resourceVersion")
                if version:
                    self._version = str(version)
        finally:
            await events.aclose()
        if asyncio.get_running_loop().time() - began > STABLE:
            self._backoff.reset()
        else:  # ended at once: not again without pause
            await self._pause(None)
