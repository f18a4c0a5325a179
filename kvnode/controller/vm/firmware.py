"""The firmware's UUID, by which a guest knows its machine: the same at every start (``firmware.go:40-89``)."""

from __future__ import annotations

import uuid

from kvnode.controller.meta import name_of, spec_of
from kvnode.kube.objects import Object

_NAMESPACE = uuid.UUID("6a1a24a1-4061-4607-8bf4-a3963d0c5895")


def legacy_uuid(name: str) -> str:
    """The UUID of a VM that was made without one: it comes of the VM's name alone."""
    return str(uuid.uuid5(_NAMESPACE, name))


def keep_uuid(vm: Object) -> None:
    """Write down, in memory, the UUID of a VM that was made without one."""
    domain = ((spec_of(vm).get("template") or {}).get("spec") or {}).get("domain")
    if domain is not None and not (domain.get("firmware") or {}).get("uuid"):
        domain["firmware"] = {**(domain.get("firmware") or {}), "uuid": legacy_uuid(name_of(vm))}
