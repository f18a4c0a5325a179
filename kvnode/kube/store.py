"""What is known of a collection now.

An object is kept as compact JSON: a tenth of the mapping's size, and whoever asks gets a copy that is theirs to
change, for the price of parsing it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import orjson

from kvnode.kube.objects import Object, key_of, metadata, uid_of, version_of

logger = logging.getLogger(__name__)

Indexer = Callable[[Object], Iterable[str]]
"""The values under which an object is to be found."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An object as it is kept."""

    key: str
    uid: str
    version: int
    """Its resource version."""
    raw: bytes
    """The object as JSON, without managedFields."""

    def load(self) -> Object:
        """A fresh copy of the object."""
        obj: Object = orjson.loads(self.raw)
        return obj


def entry_of(obj: Object) -> Entry:
    """The entry for an object, which is not changed."""
    meta = metadata(obj)
    if "managedFields" in meta:
        # Often half of the object, and of no use here; a write without them leaves them as they are.
        kept = {name: value for name, value in meta.items() if name != "managedFields"}
        obj = {**obj, "metadata": kept}
    # orjson's own bytes hold on to the whole buffer that they were written in; a copy is as large as its text.
    return Entry(key_of(obj), uid_of(obj), version_of(obj), bytes(memoryview(orjson.dumps(obj))))


class Store:
    """Objects by key, and by what indexers find in them."""

    def __init__(self, indexers: Mapping[str, Indexer] | None = None) -> None:
        """`indexers` by the name of their index."""
        self._indexers = dict(indexers or {})
        self._entries: dict[str, Entry] = {}
        self._indices: dict[str, dict[str, set[str]]] = {name: {} for name in self._indexers}
        self._values: dict[str, tuple[tuple[str, str], ...]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        """The keys, as they are at the start."""
        return iter(list(self._entries))

    def get(self, key: str) -> Object | None:
        """A copy of the object, nothing if there is none."""
        entry = self._entries.get(key)
        return entry.load() if entry else None

    def entry(self, key: str) -> Entry | None:
        """The object as it is kept."""
        return self._entries.get(key)

    def objects(self) -> Iterator[Object]:
        """Copies of all objects, one at a time."""
        for entry in list(self._entries.values()):
            yield entry.load()

    def keys_by(self, index: str, value: str) -> list[str]:
        """Keys of the objects that an index has under a value, in order.

        Raises:
            KeyError: there is no such index.
        """
        return sorted(self._indices[index].get(value, ()))

    def by(self, index: str, value: str) -> list[Object]:
        """Copies of those objects."""
        return [self._entries[key].load() for key in self.keys_by(index, value)]

    def put(self, entry: Entry, obj: Object) -> None:
        """Keep an entry, of ``obj``, in the place of what has its key.

        An object that an indexer cannot read is not found by that index.
        """
        self._unindex(entry.key)
        self._entries[entry.key] = entry
        pairs = tuple((name, value) for name in self._indexers for value in self._values_of(name, entry, obj))
        for name, value in pairs:
            self._indices[name].setdefault(value, set()).add(entry.key)
        if pairs:
            self._values[entry.key] = pairs

    def _values_of(self, index: str, entry: Entry, obj: Object) -> list[str]:
        try:
            return list(self._indexers[index](obj))
        except Exception as error:  # one odd object must not keep all others from being followed
            words = (obj.get("kind"), entry.key, index, error)
            logger.warning("%s %s: left out of the index %s, which cannot read it: %r", *words)
            return []

    def remove(self, key: str) -> Entry | None:
        """Forget an object; the answer is what it was."""
        self._unindex(key)
        return self._entries.pop(key, None)

    def _unindex(self, key: str) -> None:
        for name, value in self._values.pop(key, ()):
            keys = self._indices[name][value]
            keys.discard(key)
            if not keys:
                del self._indices[name][value]
