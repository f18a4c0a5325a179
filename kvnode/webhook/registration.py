"""Tell the API server which certificates the webhooks' are signed by."""

from __future__ import annotations

import base64
import logging
from typing import Any

from kvnode.kube.client import Client
from kvnode.kube.errors import Conflict, NotFound
from kvnode.kube.resources import Resource

logger = logging.getLogger(__name__)

CONFIGURATION = "kvnode-webhook"
"""Name of both configurations in deploy/webhook."""

_GROUP = "admissionregistration.k8s.io"
REGISTRATIONS = (
    Resource(_GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False),
    Resource(
        _GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
    ),
)


async def register(client: Client, bundle: bytes) -> bool:
    """Write the certificates (PEM) into both configurations where they are not; whether all have them now.

    Raises:
        KubeError: the API server could not be asked, or refused.
    """
    wanted = base64.b64encode(bundle).decode()
    done = [await _register(client, resource, wanted) for resource in REGISTRATIONS]
    return all(done)


async def _register(client: Client, resource: Resource, bundle: str) -> bool:
    try:
        found = await client.get(resource, CONFIGURATION)
    except NotFound:
        logger.warning("%s %s is not there: apply deploy/webhook", resource.plural, CONFIGURATION)
        return False
    webhooks: list[dict[str, Any]] = found.get("webhooks") or []
    if all(webhook["clientConfig"].get("caBundle") == bundle for webhook in webhooks):
        return True
    for webhook in webhooks:
        webhook["clientConfig"]["caBundle"] = bundle
    try:
        await client.replace(resource, {**found, "webhooks": webhooks})
    except Conflict:  # another replica, or who installs it; the next look sees to it
        return False
    return True
