"""Run the webhooks: certificates, the cluster's configuration and the server together."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kvnode.kube.client import Client
from kvnode.kube.errors import KubeError
from kvnode.kube.informer import Change, Informer
from kvnode.kube.resources import KUBEVIRTS
from kvnode.webhook.certificates import CertificateError, Lifetimes, Material
from kvnode.webhook.handlers import Admission
from kvnode.webhook.registration import register
from kvnode.webhook.server import load, make_tls, serving
from kvnode.webhook.settings import ACCOUNTS, AGENT, Settings, user_names
from kvnode.webhook.store import SharedCertificates

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """Where the webhooks run and whom they trust."""

    namespace: str = "kvnode"
    """That of the project's components: their service accounts and the Secret are in it."""
    names: tuple[str, ...] = ()
    """What the API server calls the webhooks; (): the Service ``kvnode-webhook`` of the namespace."""
    host: str = "0.0.0.0"  # noqa: S104 - in a pod, for the API server
    port: int = 8443
    """0: any."""
    accounts: tuple[str, ...] = ACCOUNTS
    agent: str = AGENT
    every: float = 60.0
    """Seconds between two looks at the certificates."""
    lifetimes: Lifetimes = field(default_factory=Lifetimes)


@dataclass(slots=True)
class Webhooks:
    """The webhooks of one API server. To be made inside the event loop."""

    client: Client
    options: Options = field(default_factory=Options)
    clock: Callable[[], float] = time.time
    address: tuple[str, int] = ("", 0)
    """Where they listen, once they do."""

    async def run(self, ready: asyncio.Event | None = None) -> None:
        """Answer until cancelled; `ready` is set when questions are answered.

        Raises:
            KubeError: the API server refused what is needed to begin.
            CertificateError: openssl failed.
            OSError: the port is taken.
            ExceptionGroup: a part failed later.
        """
        options = self.options
        names = options.names or (f"kvnode-webhook.{options.namespace}.svc",)
        shared = SharedCertificates(self.client, options.namespace, names, options.lifetimes)
        admission = Admission(self._settings({}, await self._architecture()))
        informer = Informer(self.client, KUBEVIRTS)
        informer.add_handler(lambda change: self._take(admission, change))
        material = await shared.current(self.clock())
        tls = make_tls(material.serving)
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run())
            await informer.wait_synced()
            async with serving(admission, tls, options.host, options.port) as self.address:
                logger.info("listening on %s port %d for %s", *self.address, ", ".join(names))
                await self._keep(shared, material, tls, ready)

    async def _architecture(self) -> str:
        """The API server's, which is that of machines that name none."""
        version = await self.client.call("GET", "/version")
        return str(version.get("platform") or "").partition("/")[2] or "amd64"

    def _settings(self, kubevirt: dict[str, object], architecture: str) -> Settings:
        namespace = self.options.namespace
        agents = user_names(namespace, (self.options.agent,))
        accounts = user_names(namespace, self.options.accounts) | agents
        return Settings.of(kubevirt, architecture, accounts, agents)

    def _take(self, admission: Admission, change: Change) -> None:
        """A configuration that cannot be read leaves the last good one."""
        kubevirt = {} if change.deleted else dict(change.object)
        try:
            admission.settings = self._settings(kubevirt, admission.settings.architecture)
        except ValueError as error:
            logger.warning("KubeVirt %s: %s: the settings stay as they were", change.key, error)

    async def _keep(
        self, shared: SharedCertificates, material: Material, tls: ssl.SSLContext, ready: asyncio.Event | None
    ) -> None:
        """Keep the certificate and what the API server knows of it up to date."""
        while True:
            done = False
            try:
                current = await shared.current(self.clock())
                # The API server hears of an authority before anything signed by it is shown.
                done = await register(self.client, current.bundle)
                if current.serving != material.serving:
                    load(tls, current.serving)
                    material = current
            except (KubeError, CertificateError) as error:
                logger.warning("certificates: %s: tried again", error)
            if done and ready is not None:
                ready.set()
            await asyncio.sleep(self.options.every if done else min(self.options.every, 1.0))
