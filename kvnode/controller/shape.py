"""Objects of a shape that the API does not know, as no schema keeps out: told of in one line, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kvnode.api.errors import FieldError
from kvnode.controller.ports import WARNING, Store, World
from kvnode.spec.normal import check_types

MALFORMED = "Malformed"
"""Reason of the event."""
_ODD = (TypeError, AttributeError, LookupError, ValueError)
"""What comes of taking one thing for another."""


class MalformedError(Exception):
    """An object that cannot be worked on before its author mends it."""


def malformed(kind: str, key: str, cache: Store) -> FieldError | None:
    """What in an object is not as the API declares it, if there is such a thing."""
    obj = cache.get(key)
    if obj is None:
        return None
    try:
        check_types(kind, obj)
    except FieldError as error:
        return error
    return None


@contextmanager
def telling_shape(world: World, key: str, **caches: Store) -> Iterator[None]:
    """When the work fails because an object is malformed, say so, to its author too.

    `caches` by kind are those of the objects of that key that the work reads; the first kind is the one worked on.

    Raises:
        MalformedError: instead of what came of it.
    """
    try:
        yield
    except _ODD as error:
        for kind, cache in caches.items():
            if fault := malformed(kind, key, cache):
                break
        else:
            raise
        about = next(iter(caches.values())).get(key)
        if about is not None:
            world.recorder.record(about, WARNING, MALFORMED, f"{kind}: {fault}")
        raise MalformedError(f"{kind} {key}: {fault}") from error
