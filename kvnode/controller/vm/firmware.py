"""The firmware's UUID, by which a guest knows its machine: the same at every start (``firmware.go:40-89``)."""

from __future__ import annotations

import uuid

_NAMESPACE = uuid.UUID("6a1a24a1-4061-4607-8bf4-a3963d0c5895")


def legacy_uuid(name: str) -> str:
    """The UUID of a VM that was made without one: it comes of the VM's name alone."""
    return str(uuid.uuid5(_NAMESPACE, name))
