"""``virt-node-labeller [DIRECTORY]``: writes what the node can do for the agent, which makes labels of it, and ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from kvnode.launcher import log
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.log import logger

DIRECTORY = "/var/lib/kubevirt-node-labeller"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files; the exit status is 1 where that is not possible, 2 for a wrong call."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    log.set_up()
    if len(arguments) > 1:
        logger.error("usage: virt-node-labeller [DIRECTORY]")
        return 2
    from kvnode.launcher.node_capabilities import write_capabilities  # noqa: PLC0415 - it needs libvirt

    try:
        write_capabilities(Path(arguments[0] if arguments else DIRECTORY))
    except (LauncherError, OSError) as error:
        logger.error("%s", error)
        return 1
    return 0
