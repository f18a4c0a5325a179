"""What the command server and the manager load: they are in memory once a VM."""

from __future__ import annotations

import subprocess
import sys

#: Top-level modules beside the standard library's. (grpc looks for grpc_tools, which only developers have.)
ALLOWED = {
    "cython_runtime",
    "google",
    "grpc",
    "grpc_tools",
    "kvnode",
    "libvirt",
    "libvirt_qemu",
    "libvirtmod",
    "libvirtmod_qemu",
    "typing_extensions",
}
#: Not needed until somebody asks for what they do.
LATER = {
    "google.protobuf.json_format",
    "kvnode.memory.measure",
    "kvnode.provenance",
    "kvnode.rpc.deviceplugin_v1beta1_pb2",
    "kvnode.spec.config",
    "kvnode.spec.overhead",
    "kvnode.spec.validation",
}


def test_nothing_is_loaded_that_is_not_used():
    script = (
        "import sys; before = set(sys.modules); import kvnode.launcher.manager.manager, kvnode.launcher.server.serve; "
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    names = {name.partition(".")[0] for name in loaded if not name.startswith("_cython")}
    assert names - set(sys.stdlib_module_names) - ALLOWED == {"sitecustomize"} & names
    assert loaded & LATER == set()
    assert not {name for name in loaded if name.split(".")[0] in ("click", "rich", "yaml", "lxml", "psutil")}
