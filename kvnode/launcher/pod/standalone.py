"""A VMI that is started without an agent (``pkg/virt-launcher/standalone``)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

from kvnode.launcher.errors import LauncherError
from kvnode.launcher.log import logger
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.pod.supervise import Supervised

#: The VMI, as JSON.
VARIABLE = "STANDALONE_VMI"
#: Times that it is started while daemons die over it, and seconds from one to the next: there is no agent that would
#: ask again, and a start that was lost with its daemon takes some seconds to be noticed.
ATTEMPTS, PAUSE_SECONDS = 10, 2.0


async def start_guest(sync: Callable[[Instance], Awaitable[None]], daemons: Sequence[Supervised]) -> None:
    """Have the VMI of the environment started, if there is one; raises LauncherError when that cannot be done.

    When one of ``daemons`` ended meanwhile, it is tried again.
    """
    text = os.environ.get(VARIABLE)
    if text is None:
        return
    try:
        vmi = Instance.read(text.encode(errors="replace"))
    except ValueError as error:
        raise LauncherError("NoVmi", f"{VARIABLE}: {error}") from None
    starts = [daemon.starts for daemon in daemons]
    for attempt in range(1, ATTEMPTS + 1):
        try:
            await sync(vmi)
        except Exception as error:
            stayed = starts == [daemon.starts for daemon in daemons] and all(daemon.pid for daemon in daemons)
            if stayed or attempt == ATTEMPTS:
                raise LauncherError("SyncFailed", f"{VARIABLE}: {error}") from None
            logger.warning("a daemon of libvirt went away (%s); starting the guest again", error)
        else:
            return
        await asyncio.sleep(PAUSE_SECONDS)
