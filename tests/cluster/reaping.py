"""What PID 1 of a namespace owes its orphans."""

from __future__ import annotations

import os
import time

from tests.cluster.errors import ClusterError
from tests.cluster.processes import Processes


def wait_reaping(processes: Processes) -> str:
    """Wait until one of ``processes`` ends and give its name; strangers that end meanwhile are reaped.

    Raises:
        ClusterError: nothing is left to wait for.
    """
    while True:
        for name, process in processes.running.items():
            if process.poll() is not None:
                return name
        ours = {process.pid for process in processes.running.values()}
        try:
            # WNOWAIT leaves our own children's codes to their Popen objects.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            raise ClusterError("no process is left") from None
        if ended is not None and ended.si_pid not in ours:
            os.waitpid(ended.si_pid, 0)
        else:
            time.sleep(0)
