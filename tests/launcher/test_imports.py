"""What the launcher loads: it runs once a VM, so that each module is paid a hundred times a node."""

from __future__ import annotations

import subprocess
import sys

#: Top-level modules, beside the standard library's, that the launcher may load.
ALLOWED = {"kvnode", "libvirt", "libvirtmod", "sitecustomize"}
#: Parts of kvnode that it may load. The quantity parser and a few names are all of the vocabulary.
ALLOWED_PARTS = {"kvnode.api", "kvnode.launcher", "kvnode.virt"}
#: Parts of the standard library that are heavy and not needed.
HEAVY = {
    "asyncio",
    "ssl",
    "http",
    "email",
    "unittest",
    "multiprocessing",
    "sqlite3",
    "pydoc",
    "xmlrpc",
    "ctypes",
}


def loaded_modules() -> set[str]:
    """Names of all modules after the launcher's main module was loaded in a fresh interpreter."""
    script = "import sys; before = set(sys.modules); import kvnode.launcher.main; print(*set(sys.modules) - before)"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return set(output.split())


def test_the_launcher_loads_libvirt_and_its_own_and_nothing_else() -> None:
    loaded = loaded_modules()
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - ALLOWED
    assert foreign == set()
    assert loaded & HEAVY == set()
    parts = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("kvnode.")}
    assert parts <= ALLOWED_PARTS
