"""One watch: a stream of what happens to a collection, from one resource version on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

import orjson

from kvnode.kube.client import Client, selectors
from kvnode.kube.errors import ConnectionFailed, error_of_status
from kvnode.kube.lines import LineSplitter
from kvnode.kube.objects import Object
from kvnode.kube.resources import Resource

GRACE = 30.0
"""Seconds that a watch may live on after the server should have ended it."""


@dataclass(frozen=True, slots=True)
class Event:
    """What happened: `type` is ADDED, MODIFIED, DELETED or BOOKMARK, `object` the object after it.

    A bookmark's object has a resource version and nothing more: all up to it has been told.
    """

    type: str
    object: Object


async def watch(
    client: Client,
    resource: Resource,
    resource_version: str,
    *,
    namespace: str = "",
    label_selector: str = "",
    field_selector: str = "",
    seconds: int = 300,
    opened: Callable[[], None] | None = None,
) -> AsyncGenerator[Event, None]:
    """The events after ``resource_version``, with bookmarks, until the server ends the watch, after ``seconds``.

    ``opened`` is called when the server has accepted the watch, which may be long before the first event.
    Close the generator (`contextlib.aclosing`) when leaving it early: that ends the connection.
    Silence is no fault: a connection whose other side is gone is noticed by the kernel (`transport`).

    Raises:
        Expired: the version is too old; list again.
        ApiError: the server refused, or ended the watch with an error.
        ConnectionFailed: the connection broke or what came is no watch.
    """
    parameters = {
        **selectors(label_selector, field_selector),
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": resource_version,
        "timeoutSeconds": str(seconds),
    }
    path = resource.path(namespace)
    splitter = LineSplitter()
    deadline = asyncio.get_running_loop().time() + seconds + GRACE
    async with client.stream(path, parameters) as pieces:
        if opened is not None:
            opened()
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    piece = await anext(pieces, b"")
            except TimeoutError:
                raise ConnectionFailed(f"GET {path}: the server did not end the watch") from None
            if not piece:
                return
            try:
                lines = splitter.feed(piece)
            except ValueError as error:
                raise ConnectionFailed(f"GET {path}: {error}") from None
            for line in lines:
                yield _event(line, path)


def _event(line: bytes, path: str) -> Event:
    try:
        document = orjson.loads(line)
        kind, obj = document["type"], document["object"]
    except (ValueError, KeyError, TypeError):
        raise ConnectionFailed(f"GET {path}: a line is no watch event") from None
    if not isinstance(obj, dict):
        raise ConnectionFailed(f"GET {path}: an event has no object")
    if kind == "ERROR":
        raise error_of_status(obj)
    return Event(str(kind), obj)
