"""The launcher's log: one line an entry on standard error, which is a file in the VM's directory."""

from __future__ import annotations

import logging
import sys
import time

logger = logging.getLogger("kvnode.launcher")


def set_up(level: int = logging.INFO) -> None:
    """Send the log to standard error, with times in UTC."""
    formatter = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logger.handlers = [handler]
    logger.setLevel(level)
    logger.propagate = False
