"""What an import of the package costs, and what it must not bring along."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import kvnode.kube.client, kvnode.kube.events, kvnode.kube.expectations, kvnode.kube.informer
import kvnode.kube.leader, kvnode.kube.ownership, kvnode.kube.queue
print(*sorted({name.partition(".")[0] for name in sys.modules}))
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) // 1024)
"""


def test_it_brings_an_http_client_and_little_else() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    modules, own = done.stdout.splitlines()
    assert "aiohttp" in modules.split()
    assert not set(modules.split()) & {
        "yaml",
        "libvirt",
        "grpc",
        "google",
        "lxml",
        "click",
        "rich",
        "pydantic",
    }
    # Pages of files are not counted: how many are there depends on what others have read.
    assert int(own) < 34, "MiB of a whole process"
