"""A collection's newest state in memory, and word of every change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from kvnode.kube.client import Client
from kvnode.kube.objects import Object, version_of
from kvnode.kube.reflector import Reflector
from kvnode.kube.resources import Resource
from kvnode.kube.store import Entry, Indexer, Store, entry_of
from kvnode.kube.watch import Event

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Change:
    """An object was added (no `before`), deleted (no `after`) or changed. To be read, not to be changed."""

    key: str
    _before: Entry | None
    _after: Entry | None
    own: bool = False
    """Whether it is told by the answer to a write of this process, and not by a watch."""

    @property
    def added(self) -> bool:
        """Whether it is new."""
        return self._before is None

    @property
    def deleted(self) -> bool:
        """Whether it is gone."""
        return self._after is None

    @cached_property
    def before(self) -> Object | None:
        """The object as it was last seen."""
        return self._before.load() if self._before else None

    @cached_property
    def after(self) -> Object | None:
        """The object as it is."""
        return self._after.load() if self._after else None

    @property
    def object(self) -> Object:
        """The object as it is, or as it last was."""
        found = self.after if self._after else self.before
        return found if found is not None else {}


Handler = Callable[[Change], None]


class Informer:
    """Keeps a `Store` equal to a collection and tells handlers what changed.

    Handlers run in the event loop, after the store has changed; they put names into queues and no more. An object
    that was deleted and made again under its name between two looks is told as a deletion and an addition.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexers: Mapping[str, Indexer] | None = None,
    ) -> None:
        """Nothing is asked yet."""
        self.resource = resource
        self.store = Store(indexers)
        self._handlers: list[Handler] = []
        self._position = 0
        self._listed: set[str] = set()
        self._restored = False
        self.reflector = Reflector(
            client,
            resource,
            self,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )

    def add_handler(self, handler: Handler) -> None:
        """Tell ``handler`` every change from now on, and all that is known already as additions."""
        self._handlers.append(handler)
        for key in self.store:
            self._tell(Change(key, None, self.store.entry(key)), (handler,))

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        await self.reflector.run()

    async def wait_synced(self) -> None:
        """Wait until the first list is in the store."""
        await self.reflector.synced.wait()

    def observe(self, obj: Object) -> bool:
        """Take the answer of one's own write as if the watch had told it, so that the next look is not stale.

        Only what is newer than all that the watch has told is taken, which is the answer: older, the watch knows
        better (it may have told of the deletion). It must be an object that the selectors of this informer choose.
        """
        version = version_of(obj)
        if not self.reflector.synced.is_set() or not version or version <= self._position:
            return False
        return self._take(obj, own=True)

    # What the reflector tells; see its Follower.

    def begin(self, resource_version: str) -> None:
        """A new list begins."""
        self._listed = set()
        # A server restored from a backup counts from where that ended: what is known is of no age to compare with.
        self._restored = _number(resource_version) < self._position

    def listed(self, obj: Object) -> None:
        """An object of the list."""
        entry = entry_of(obj)
        self._listed.add(entry.key)
        self._take(obj, entry)

    def complete(self, resource_version: str) -> None:
        """The list is whole."""
        position = _number(resource_version)
        for key in self.store:
            entry = self.store.entry(key)
            # What we wrote ourselves after the list is not in it and yet is there.
            kept = entry is not None and position and entry.version > position and not self._restored
            if key not in self._listed and not kept:
                self._drop(key)
        self._listed = set()
        self._restored = False
        self._position = position

    def happened(self, event: Event) -> None:
        """An event of the watch."""
        if event.type in ("ADDED", "MODIFIED"):
            self._take(event.object)
        elif event.type == "DELETED":
            entry = entry_of(event.object)
            known = self.store.entry(entry.key)
            # A deletion that is older than what is known is that of a namesake before.
            if known is not None and (known.uid == entry.uid or not known.version > entry.version):
                self._drop(entry.key, event.object)
        self._position = version_of(event.object) or self._position

    def _take(self, obj: Object, entry: Entry | None = None, *, own: bool = False) -> bool:
        entry = entry or entry_of(obj)
        known = self.store.entry(entry.key)
        if known is not None:
            if entry.version and known.version >= entry.version and not self._restored:
                return False  # told already, by the answer to our own write or by an older list
            if known.uid != entry.uid:
                self._drop(entry.key)
                known = None
        self.store.put(entry, obj)
        self._tell(Change(entry.key, known, entry, own), self._handlers)
        return True

    def _drop(self, key: str, last: Object | None = None) -> None:
        known = self.store.remove(key)
        if known is not None:
            self._tell(Change(key, entry_of(last) if last is not None else known, None), self._handlers)

    def _tell(self, change: Change, handlers: list[Handler] | tuple[Handler, ...]) -> None:
        for handler in tuple(handlers):
            try:
                handler(change)
            except Exception as error:  # one handler's fault must not keep the store from following
                logger.error("%s %s: a handler failed: %r", self.resource, change.key, error)  # noqa: TRY400
                logger.debug("%s %s", self.resource, change.key, exc_info=error)


def _number(resource_version: str) -> int:
    return int(resource_version) if resource_version.isascii() and resource_version.isdigit() else 0


async def run_informers(*informers: Informer, ready: asyncio.Event | None = None) -> None:
    """Run informers until cancelled; ``ready`` is set when all have their first list."""
    async with asyncio.TaskGroup() as group:
        for informer in informers:
            group.create_task(informer.run())
        for informer in informers:
            await informer.wait_synced()
        if ready is not None:
            ready.set()
