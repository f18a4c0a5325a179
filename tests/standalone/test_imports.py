"""What standalone mode loads in the process that calls it."""

from __future__ import annotations

import subprocess
import sys


def test_the_caller_needs_no_libvirt_binding() -> None:
    script = "import sys; import kvnode.standalone.runner; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    tops = {name.partition(".")[0] for name in loaded}
    assert not tops & {"libvirt", "libvirt_qemu", "psutil", "click", "rich", "yaml", "lxml", "grpc"}
    assert "kvnode.launcher" not in loaded
