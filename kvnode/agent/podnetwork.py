"""The pod's network, set up by `kvnode.net` in a thread: netlink's calls block."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from kvnode.agent.errors import AgentError, CriticalNetworkError
from kvnode.agent.vmi import Vmi, key_of, uid_of
from kvnode.net.errors import CriticalNetError, NetError
from kvnode.net.podnetwork import PodNetworks
from kvnode.spec.config import ClusterConfig

logger = logging.getLogger(__name__)


class Launcher(Protocol):
    """A process."""

    @property
    def pid(self) -> int:
        """Its number."""

    @property
    def proc(self) -> Path:
        """Its folder in /proc, good as long as this object is kept."""


class PodNetwork:
    """The networks of this node's VMIs."""

    def __init__(
        self,
        networks: PodNetworks,
        launcher_of: Callable[[Vmi], Awaitable[Launcher]],
        config: Callable[[], ClusterConfig],
    ) -> None:
        """`launcher_of` finds the launcher's process, in whose namespace the network is."""
        self._networks = networks
        self._launcher_of = launcher_of
        self._config = config

    async def setup(self, vmi: Vmi, networks: Sequence[Mapping[str, Any]]) -> None:
        """Set these networks up in the launcher's namespace; CriticalNetworkError when that is final."""
        launcher, config = await self._launcher_of(vmi), self._config()
        try:
            await asyncio.to_thread(
                lambda: self._networks.setup(vmi, networks, launcher.pid, config, launcher.proc)
            )
        except CriticalNetError as error:
            raise CriticalNetworkError(str(error)) from error
        except NetError as error:
            raise AgentError(str(error)) from error

    async def teardown(self, vmi: Vmi) -> None:
        """Remove the files of the set-up."""
        try:
            await asyncio.to_thread(self._networks.teardown, uid_of(vmi))
        except NetError as error:
            raise AgentError(str(error)) from error

    def forget(self, vmi: Vmi) -> None:
        """Drop what was remembered of the VMI's interfaces."""
        self._networks.forget(uid_of(vmi))

    def pod_addresses(self, vmi: Vmi, network: str) -> Sequence[str]:
        """Addresses that the pod's interface had at set-up, the preferred one first; none that cannot be read."""
        try:
            return self._networks.pod_addresses(uid_of(vmi), network)
        except NetError as error:
            logger.warning("%s: addresses of network %s: %s", key_of(vmi), network, error)
            return ()
