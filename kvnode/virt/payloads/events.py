"""What a domain event says to the node agent that gets it (``pkg/virt-handler/notify-server/server.go``)."""

from __future__ import annotations

from typing import Any

from kvnode.virt.domain_json import decode_domain
from kvnode.virt.domain_json.gojson import decode
from kvnode.virt.payloads.kubernetes import STATUS

#: Types of events that carry a domain; ERROR carries a Status.
DOMAIN_EVENTS = ("ADDED", "MODIFIED", "DELETED")
ERROR = "ERROR"


def read_domain_event(kind: str, domain: bytes, status: bytes) -> dict[str, Any] | None:
    """The object that an event of type ``kind`` is about: a Domain, a Status for ERROR.

    None for a type that means nothing here: the event is taken and dropped. Both payloads are read whatever
    the type; an empty one is an object with nothing set.

    Raises:
        DomainFormatError: one of them is not what it must be.
    """
    read = decode_domain(domain) if domain else decode_domain("{}")
    failure = decode(STATUS, status, "status") if status else STATUS.zero()
    if kind == ERROR:
        return failure
    return read if kind in DOMAIN_EVENTS else None
