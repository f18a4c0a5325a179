"""The Secret in which the replicas share their certificates: whoever comes first makes or renews them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvnode.kube.client import Client
from kvnode.kube.errors import AlreadyExists, Conflict, NotFound
from kvnode.kube.objects import Object
from kvnode.kube.resources import SECRETS
from kvnode.webhook.certificates import (
    CertificateError,
    Lifetimes,
    Material,
    Pair,
    certificates,
    check,
    make,
    renewed,
)

logger = logging.getLogger(__name__)

SECRET = "kvnode-webhook"  # noqa: S105 - the name of a Secret
_TRIES = 5


@dataclass(slots=True)
class SharedCertificates:
    """The certificates of one cluster's webhooks."""

    client: Client
    namespace: str
    names: tuple[str, ...]
    """DNS names and IP addresses that the API server calls the webhooks by."""
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    _checked: Material | None = None
    """What was found sound last."""

    async def current(self, now: float) -> Material:
        """The material that all replicas are to use at the time `now`, after it was renewed if that is due.

        Raises:
            KubeError: the API server could not be asked, or refused.
            CertificateError: openssl failed.
        """
        for _ in range(_TRIES):
            try:
                return await self._once(now)
            except (AlreadyExists, Conflict):  # another replica was quicker: take its
                continue
        raise CertificateError(f"the Secret {self.namespace}/{SECRET} changes faster than it can be written")

    async def _once(self, now: float) -> Material:
        try:
            secret: Object | None = await self.client.get(SECRETS, SECRET, self.namespace)
        except NotFound:
            secret = None
        before = _read(secret) if secret is not None else None
        after = await asyncio.to_thread(self._due, before, now)
        if after is before:
            return after
        metadata: Mapping[str, Any] = {"name": SECRET, "namespace": self.namespace}
        if secret is None:
            await self.client.create(SECRETS, {"metadata": metadata, "data": _written(after)})
        else:
            await self.client.replace(SECRETS, {**secret, "data": _written(after)})
        logger.info("certificates: %s", "made" if before is None else "renewed")
        return after

    def _due(self, before: Material | None, now: float) -> Material:
        if before is None:
            return make(self.names, self.lifetimes)
        try:
            if before != self._checked:
                check(before)
                self._checked = before
            return renewed(before, self.names, now, self.lifetimes)
        except CertificateError as error:
            # Somebody wrote into the Secret; a new authority is as good as the first one was.
            logger.warning("certificates: cannot be used and are made anew: %s", error)
            return make(self.names, self.lifetimes)


def _written(material: Material) -> dict[str, str]:
    successor = material.successor or Pair(b"", b"")
    data = {
        "ca.crt": b"".join((material.authority.certificate, *material.former)),
        "ca.key": material.authority.key,
        "next.crt": successor.certificate,
        "next.key": successor.key,
        "tls.crt": material.serving.certificate,
        "tls.key": material.serving.key,
    }
    return {name: base64.b64encode(value).decode() for name, value in data.items() if value}


def _read(secret: Mapping[str, Any]) -> Material | None:
    """What the Secret holds, None if that is not whole."""
    data: dict[str, bytes] = {}
    for name, value in (secret.get("data") or {}).items():
        try:
            data[name] = base64.b64decode(value, validate=True)
        except (binascii.Error, TypeError, ValueError):
            return None
    if not all(data.get(name) for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")):
        return None
    authorities = certificates(data["ca.crt"])
    if not authorities:
        return None
    coming = data.get("next.crt"), data.get("next.key")
    successor = Pair(coming[0], coming[1]) if coming[0] and coming[1] else None
    return Material(
        Pair(authorities[0], data["ca.key"]),
        Pair(data["tls.crt"], data["tls.key"]),
        successor,
        tuple(authorities[1:]),
    )
