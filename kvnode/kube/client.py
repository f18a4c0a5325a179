"""Calls to the API server: plain JSON mappings in and out.

One client a process, made inside the event loop: ``async with Client(configuration) as client``.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self, TypeVar

import aiohttp
import orjson

from kvnode.kube.config import Configuration
from kvnode.kube.errors import (
    ApiError,
    ConnectionFailed,
    DeadlineExceeded,
    TooManyRequests,
    Unauthorized,
    error_of_answer,
)
from kvnode.kube.objects import Object, metadata
from kvnode.kube.ratelimit import TokenBucket
from kvnode.kube.resources import Resource
from kvnode.kube.transport import Liveness, abort, connector

logger = logging.getLogger(__name__)

T = TypeVar("T")

PAGE = 500
"""Objects a page of a list."""


class PatchType(enum.StrEnum):
    """How a patch is written, by its media type."""

    JSON = "application/json-patch+json"
    """RFC 6902: a list of operations."""
    MERGE = "application/merge-patch+json"
    """RFC 7396: a partial object; a list is replaced whole."""
    STRATEGIC = "application/strategic-merge-patch+json"
    """A partial object whose lists are merged by key; not for custom resources."""
    APPLY = "application/apply-patch+yaml"
    """Server-side apply: all the fields that a field manager wants."""


class Client:
    """An API server's client."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        user_agent: str = "kvnode",
        limiter: TokenBucket | None = None,
        timeout: float = 30.0,
        patience: float = 60.0,
        liveness: Liveness | None = None,
    ) -> None:
        """Nothing is connected yet.

        Arguments:
            limiter: every request waits for its turn in it, a watch too
            timeout: seconds that one try of a request may take, from connecting to the answer's last byte
            patience: seconds that all waits may take together that a server asks for (429, Retry-After)

        Raises:
            ConfigurationError: a certificate or key cannot be used.
        """
        self.configuration = configuration
        self._ssl = configuration.ssl_context()
        self._limiter = limiter
        self._timeout = timeout
        self._patience = patience
        # JSON, not CBOR or protobuf; and not compressed, which costs the server more time than a cluster's network.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": user_agent}
        self._session = aiohttp.ClientSession(
            connector=connector(liveness or Liveness()),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """The object as it is now.

        Raises:
            NotFound: there is none. All calls raise ApiError and ConnectionFailed.
        """
        return await self.call("GET", resource.path(namespace, name))

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE,
    ) -> AsyncGenerator[Object, None]:
        """The collection page by page, each a List object; all are of one resource version.

        Raises:
            Expired: it took so long between two pages that the rest cannot be had any more.
        """
        parameters = selectors(label_selector, field_selector)
        parameters["limit"] = str(limit)
        path = resource.path(namespace)
        while True:
            page = await self.call("GET", path, parameters=parameters)
            yield page
            token = metadata(page).get("continue")
            if not token:
                return
            parameters["continue"] = str(token)

    async def list_all(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """All objects of the collection."""
        found: list[Object] = []
        pages = self.pages(resource, namespace, label_selector=label_selector, field_selector=field_selector)
        async for page in pages:
            found += page.get("items") or ()
        return found

    async def create(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Create the object in its metadata's namespace; the answer is the object as stored.

        Raises:
            AlreadyExists: one of that name is there.
        """
        namespace = _namespace(obj)
        if resource.namespaced and not namespace:
            raise ValueError(f"{resource.plural}: metadata.namespace is needed to create one")
        name = str(metadata(obj)["name"]) if subresource else ""
        return await self.call("POST", resource.path(namespace, name, subresource), body=obj)

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Write the whole object; ``subresource="status"`` writes its status alone.

        Raises:
            Conflict: it was changed since it was read, or is another of the same name.
        """
        name = str(metadata(obj).get("name", ""))
        return await self.call("PUT", resource.path(_namespace(obj), name, subresource), body=obj)

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Object | list[Object],
        kind: PatchType = PatchType.JSON,
        *,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        """Change parts of the object; the answer is the whole.

        Arguments:
            field_manager: who applies; needed for `PatchType.APPLY`
            force: take fields that another manager has, with `PatchType.APPLY`

        Raises:
            Conflict: another field manager has a field, or the object changed.
            Invalid: a ``test`` operation failed.
        """
        parameters: dict[str, str] = {}
        if field_manager:
            parameters["fieldManager"] = field_manager
        if force:
            parameters["force"] = "true"
        path = resource.path(namespace, name, subresource)
        return await self.call("PATCH", path, body=patch, media_type=kind.value, parameters=parameters)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: str = "",
    ) -> Object:
        """Delete the object, only if it still is that one when ``uid`` or ``resource_version`` are given.

        Raises:
            NotFound: it is gone already.
            Conflict: it is another.
        """
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        if chosen := {field: value for field, value in preconditions.items() if value}:
            options["preconditions"] = chosen
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation:
            options["propagationPolicy"] = propagation
        return await self.call("DELETE", resource.path(namespace, name), body=options)

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        media_type: str = "application/json",
        parameters: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Object:
        """One call, repeated for as long as the server asks for patience; the answer is its JSON object.

        Raises:
            ApiError: the server refused.
            DeadlineExceeded: no whole answer in time.
            ConnectionFailed: no answer, or one that cannot be read.
        """
        data = None if body is None else orjson.dumps(body)
        limit = self._timeout if timeout is None else timeout

        async def one_try() -> Object:
            try:
                async with (
                    asyncio.timeout(limit),
                    self._request(
                        method, path, data=data, media_type=media_type, parameters=parameters
                    ) as response,
                ):
                    text = await response.read()
            except TimeoutError:
                raise DeadlineExceeded(f"{method} {path}: no answer within {limit:g} s") from None
            try:
                answer = orjson.loads(text)
            except orjson.JSONDecodeError:
                raise ConnectionFailed(f"{method} {path}: the answer is no JSON") from None
            if not isinstance(answer, dict):
                raise ConnectionFailed(f"{method} {path}: the answer is no object")
            return answer

        return await self._patiently(one_try)

    @asynccontextmanager
    async def stream(self, path: str, parameters: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a GET whose answer does not end soon; the pieces of its body are given as they come.

        Raises:
            ApiError: the server refused.
            ConnectionFailed: it could not be asked, or the connection broke.
        """
        async with AsyncExitStack() as stack:

            async def one_try() -> aiohttp.ClientResponse:
                request = self._request("GET", path, parameters=parameters)
                try:
                    async with asyncio.timeout(self._timeout):
                        return await stack.enter_async_context(request)
                except TimeoutError:
                    raise DeadlineExceeded(f"GET {path}: no answer within {self._timeout:g} s") from None

            response = await self._patiently(one_try)
            pieces = _pieces(response, path)
            try:
                yield pieces
            finally:
                await pieces.aclose()
                abort(response)

    async def _patiently(self, one_try: Callable[[], Awaitable[T]]) -> T:
        """Repeat a try for as long as the server names a time to wait, and once when it wants a new token."""
        waited = 0.0
        rejected = False
        while True:
            if self._limiter:
                await self._limiter.wait()
            try:
                return await one_try()
            except Unauthorized:
                if rejected:
                    raise
                rejected = True
                self.configuration.credential.reject()
            except ApiError as error:
                delay = error.retry_after
                if delay is None and isinstance(error, TooManyRequests):
                    delay = 1.0
                if (
                    delay is None
                    or (error.status != 429 and error.status < 500)
                    or waited + delay > self._patience
                ):
                    raise
                waited += delay
                logger.debug("%s: again in %.1f s", error, delay)
                await asyncio.sleep(delay)

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None = None,
        media_type: str = "",
        parameters: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {}
        if token := await self.configuration.credential.token():
            headers["Authorization"] = f"Bearer {token}"
        if data is not None:
            headers["Content-Type"] = media_type
        try:
            async with self._session.request(
                method,
                self.configuration.server + path,
                params=dict(parameters or {}),
                data=data,
                headers=headers,
                ssl=self._ssl or True,
                server_hostname=self.configuration.server_name or None,
                allow_redirects=False,
            ) as response:
                if response.status >= 300:
                    body = await response.read()
                    raise error_of_answer(response.status, body, _retry_after(response))
                try:
                    yield response
                except BaseException:
                    abort(response)
                    raise
        except aiohttp.ClientError as error:
            raise ConnectionFailed(f"{method} {path}: {error or type(error).__name__}") from error
        except TimeoutError:
            raise
        except OSError as error:
            raise ConnectionFailed(f"{method} {path}: {error}") from error


def selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    """Query parameters of selectors, those that are given."""
    chosen = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in chosen.items() if value}


async def _pieces(response: aiohttp.ClientResponse, path: str) -> AsyncGenerator[bytes, None]:
    try:
        async for piece in response.content.iter_any():
            yield piece
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionFailed(f"GET {path}: {error or type(error).__name__}") from error


def _namespace(obj: Object) -> str:
    return str(metadata(obj).get("namespace") or "")


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None
