"""Whether a cache shows what was last written.

What is computed from an object that is known to be old is refused: by its resource version, or by a patch's test.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kvnode.controller.ports import Api
from kvnode.kube.client import PatchType
from kvnode.kube.objects import Object, is_deleting, key_of, metadata, uid_of, version_of
from kvnode.kube.resources import Resource

TTL = 300.0
"""Seconds after which a write that no cache has shown is forgotten."""

_GONE = sys.maxsize
"""Newer than all: whatever a cache shows of an object that is gone is old."""


def _is_gone(obj: Object) -> bool:
    """Whether a write's answer is the last that there is of an object: the write took its last finalizer."""
    meta = metadata(obj)
    return is_deleting(obj) and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds")


class FreshApi:
    """An `Api` that remembers the resource version of what it wrote."""

    def __init__(
        self,
        api: Api,
        clock: Callable[[], float] = time.monotonic,
        observe: Callable[[Resource, Object], None] | None = None,
    ) -> None:
        """`clock` gives seconds that only grow; `observe` is shown what was written, as soon as it is."""
        self._api = api
        self._clock = clock
        self._observe = observe
        self._written: dict[tuple[str, str], tuple[str, int, float]] = {}
        self._underway: dict[tuple[str, str], set[asyncio.Future[None]]] = {}

    def is_stale(self, resource: Resource, obj: Object) -> bool:
        """Whether an object of a cache is older than what was written; it need not be worked on."""
        key = (resource.plural, key_of(obj))
        uid, version, since = self._written.get(key, ("", 0, 0.0))
        return uid == uid_of(obj) and version_of(obj) < version and self._clock() - since < TTL

    def __len__(self) -> int:
        return len(self._written)

    def forget(self, resource: Resource, key: str) -> None:
        """The object is gone."""
        self._written.pop((resource.plural, key), None)

    async def settled(self, resource: Resource, key: str) -> None:
        """Wait until no write of the object of that key is under way: what is computed meanwhile is old when done."""
        while underway := self._underway.get((resource.plural, key)):
            await asyncio.wait(set(underway))

    @contextmanager
    def _writing(self, resource: Resource, name: str, namespace: str) -> Iterator[None]:
        key = (resource.plural, f"{namespace}/{name}" if namespace else name)
        done = asyncio.get_running_loop().create_future()
        self._underway.setdefault(key, set()).add(done)
        try:
            yield
        finally:
            done.set_result(None)
            self._underway[key].discard(done)
            if not self._underway[key]:
                del self._underway[key]

    def _note(self, resource: Resource, obj: Object, *, observed: bool = True) -> Object:
        now, key = self._clock(), (resource.plural, key_of(obj))
        self._written.pop(key, None)
        self._written[key] = (uid_of(obj), _GONE if _is_gone(obj) else version_of(obj), now)
        while now - (oldest := next(iter(self._written.items())))[1][2] >= TTL:
            del self._written[oldest[0]]
        if self._observe is not None and observed:
            self._observe(resource, obj)
        return obj

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """See `Api.get`."""
        return await self._api.get(resource, name, namespace)

    async def create(self, resource: Resource, obj: Object) -> Object:
        """See `Api.create`."""
        made = await self._api.create(resource, obj)
        if self._observe is not None:
            self._observe(resource, made)
        return made

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """See `Api.replace`."""
        meta = metadata(obj)
        with self._writing(resource, str(meta.get("name", "")), str(meta.get("namespace") or "")):
            return self._note(resource, await self._api.replace(resource, obj, subresource=subresource))

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Object | list[Object],
        kind: PatchType = PatchType.JSON,
        *,
        subresource: str = "",
    ) -> Object:
        """See `Api.patch`."""
        with self._writing(resource, name, namespace):
            patched = await self._api.patch(resource, name, namespace, patch, kind, subresource=subresource)
            return self._note(resource, patched)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, grace_seconds: int | None = None
    ) -> Any:
        """See `Api.delete`."""
        with self._writing(resource, name, namespace):
            answer = await self._api.delete(resource, name, namespace, grace_seconds=grace_seconds)
            if isinstance(answer, dict) and answer.get("kind") == resource.kind and is_deleting(answer):
                # It is there until its finalizers are gone. That it is told of is still waited for.
                self._note(resource, answer, observed=False)
            return answer
