"""``python -m tests.agent.offering SYSFS``: device plugins of a node, to be run inside it.

Every line of standard input is ``spec.configuration`` of a KubeVirt object, which counts from then on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path

from kvnode.agent.devices.offer import Host
from kvnode.agent.devices.plugins import Plugins
from kvnode.agent.settings import Settings
from kvnode.spec.config import ClusterConfig


async def main(sysfs: Path) -> None:
    """Offer until standard input ends."""
    settings = Settings("node", sysfs=sysfs)
    plugins = Plugins(settings.device_plugins, Host(settings.devices, settings.sysfs, count=5))
    running = asyncio.create_task(plugins.run())
    while line := await asyncio.to_thread(sys.stdin.readline):
        plugins.configure(ClusterConfig.from_mapping(json.loads(line)))
    running.cancel()
    await asyncio.wait([running])


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(Path(sys.argv[1])))
