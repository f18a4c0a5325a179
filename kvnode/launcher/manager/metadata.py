"""KubeVirt's metadata of the domain, kept by the launcher: what it sends is from here, not from libvirt's XML
(``pkg/virt-launcher/metadata``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from kvnode.virt.domain_json import make_metadata
from kvnode.virt.domain_json.schema.metadata import (
    ACCESS_CREDENTIAL_METADATA,
    GRACE_PERIOD_METADATA,
    MEMORY_DUMP_METADATA,
)
from kvnode.virt.domain_json.shape import Struct

_SECTIONS: Mapping[str, Struct] = {
    "GracePeriod": GRACE_PERIOD_METADATA,
    "AccessCredential": ACCESS_CREDENTIAL_METADATA,
    "MemoryDump": MEMORY_DUMP_METADATA,
}


def now() -> str:
    """The time as metadata have it: RFC 3339 in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class MetadataCache:
    """The metadata, and who wants to hear of changes. Any thread may use it.

    Sections are ``GracePeriod``, ``AccessCredential`` and ``MemoryDump``, under the names of
    ``kvnode.virt.domain_json.schema.metadata``; a section is there once it was written to.
    """

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._lock = threading.Lock()
        self._uid = ""
        self._sections: dict[str, dict[str, Any]] = {}
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change, in the thread that made it; it must not block."""
        self._listeners.append(listener)

    @property
    def uid(self) -> str:
        """UID of the VMI; "" before the domain is defined."""
        return self._uid

    def set_uid(self, uid: str) -> None:
        """Note the VMI's UID. Nobody is told: the domain's own event follows."""
        self._uid = uid

    def section(self, name: str) -> Mapping[str, Any] | None:
        """A copy of a section; None before it was written to."""
        with self._lock:
            found = self._sections.get(name)
            return None if found is None else dict(found)

    def update(self, name: str, *, quietly: bool = False, **fields: Any) -> None:
        """Set fields of a section. Listeners are told when it changed, unless ``quietly``.

        Raises TypeError for a field that the section does not have.
        """
        with self._lock:
            before = self._sections.get(name)
            after = _SECTIONS[name].make(**{**(before or {}), **fields})
            self._sections[name] = after
        if not quietly and before != after:
            self.tell()

    def replace(self, name: str, **fields: Any) -> None:
        """Write a section anew with these fields set, and tell."""
        with self._lock:
            self._sections[name] = _SECTIONS[name].make(**fields)
        self.tell()

    def tell(self) -> None:
        """Call the listeners."""
        for listener in tuple(self._listeners):
            listener()

    def snapshot(self) -> dict[str, Any]:
        """All of it, as ``make_metadata`` gives it."""
        with self._lock:
            return make_metadata(UID=self._uid, **{name: dict(part) for name, part in self._sections.items()})
