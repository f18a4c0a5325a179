"""``virt-launcher``: the launcher of a pod."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the pod's VM to its end; the exit status is the container's."""
    from kvnode.launcher.pod.main import main as run  # noqa: PLC0415 - named late: it loads everything

    return run(sys.argv[1:] if argv is None else list(argv))
