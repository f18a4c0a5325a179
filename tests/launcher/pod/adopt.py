"""``python -m tests.launcher.pod.adopt PLAN``: starts a sandbox, and writes its first process's id and status.

The sandbox's starter leaves its child an orphan; this process takes orphans in (PR_SET_CHILD_SUBREAPER), as the
container runtime's shim does for a pod.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

from kvnode.standalone import records, sandbox

_PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    """Start the sandbox of the plan in ``argv[1]`` and wait for its end."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    directory = Path(json.loads(sys.argv[1])["directory"])
    starter = os.fork()
    if starter == 0:
        os._exit(sandbox.main([sys.argv[1]]))
    _, status = os.waitpid(starter, 0)
    if status != 0:
        return 1
    first = json.loads((directory / records.LAUNCHER_PID).read_text())["pid"]
    _write(directory / "first-process", first)
    while True:
        pid, status = os.wait()
        if pid == first:
            code = os.waitstatus_to_exitcode(status)
            _write(directory / "status", code if code >= 0 else 128 - code)
            return 0


def _write(path: Path, number: int) -> None:
    staging = path.with_suffix(".new")
    staging.write_text(str(number))
    staging.rename(path)


if __name__ == "__main__":
    sys.exit(main())
