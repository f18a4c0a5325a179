"""A new authority takes over in a real API server, which trusts what answers it at every moment."""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from typing import Any

import pytest

from kvnode.kube.client import Client
from kvnode.webhook.certificates import Material
from kvnode.webhook.registration import CONFIGURATION, REGISTRATIONS
from kvnode.webhook.store import SharedCertificates
from tests.cluster.cluster import Cluster
from tests.controller.test_manager import eventually
from tests.kube.loops import minutes
from tests.kube.support import background
from tests.webhook.ask import vmi
from tests.webhook.test_cluster import answer_to, installed

pytestmark = pytest.mark.cluster

DAY = 86400.0


async def after(shared: SharedCertificates, before: Material) -> Material:
    """What the replicas share once it is other than it was."""

    async def check() -> Material | None:
        found = await shared.current(time.time())
        return found if found != before else None

    found: Material = await eventually(check)
    return found


async def registered(client: Client, bundle: bytes) -> None:
    """Wait until the API server was told to trust this."""
    text = base64.b64encode(bundle).decode()

    async def check() -> bool:
        found: list[Any] = [await client.get(one, CONFIGURATION) for one in REGISTRATIONS]
        return all(one["webhooks"][0]["clientConfig"]["caBundle"] == text for one in found)

    await eventually(check)


async def served(address: tuple[str, int], certificate: bytes) -> None:
    """Wait until this is what is shown."""
    wanted = ssl.PEM_cert_to_DER_cert(certificate.decode())

    async def check() -> bool:
        shown = await asyncio.to_thread(ssl.get_server_certificate, address, timeout=30)
        return ssl.PEM_cert_to_DER_cert(shown) == wanted

    await eventually(check)


@minutes(3)
async def test_a_new_authority_is_trusted_before_it_signs(control_plane: Cluster, namespace: str) -> None:
    async with installed(control_plane, namespace) as it:
        shared = SharedCertificates(it.user, namespace, ("127.0.0.1",))
        before = await shared.current(time.time())
        answers: set[str] = set()

        async def ask() -> None:
            while True:
                answers.add(await answer_to(it.user, vmi(hostname="Not A Name"), namespace))

        async with background(ask()):
            late = [time.time() + 250 * DAY]  # for one look, that makes the next authority known
            it.webhooks.clock = lambda: late.pop() if late else time.time()
            known = await after(shared, before)
            assert known.successor is not None
            assert known.serving == before.serving
            await registered(it.user, known.bundle)
            await served(it.webhooks.address, before.serving.certificate)

            it.webhooks.clock = lambda: time.time() + 7200
            signed = await after(shared, known)
            assert signed.authority == known.successor
            assert signed.former == (before.authority.certificate,)
            await registered(it.user, signed.bundle)
            await served(it.webhooks.address, signed.serving.certificate)
            answers_before = len(answers)
            await asyncio.sleep(1)
        assert answers_before == 1
        assert len(answers) == 1, answers
        assert "spec.hostname" in answers.pop()
