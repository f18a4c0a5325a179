"""``virt-launcher``: the launcher of a pod."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

#: Modules that the standard library loads where they are there and does without where not: OpenSSL's. Nothing here
#: speaks TLS, and they would cost two megabytes.
_WITHOUT = ("ssl", "_hashlib")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the pod's VM to its end; the exit status is the container's."""
    forgo()
    from kvnode.launcher.pod.main import main as run  # noqa: PLC0415 - named late: it loads everything

    return run(sys.argv[1:] if argv is None else list(argv))


def forgo() -> None:
    """Do without what is in ``_WITHOUT`` from now on, in this whole process."""
    modules: dict[str, Any] = sys.modules
    for name in _WITHOUT:
        modules.setdefault(name, None)
