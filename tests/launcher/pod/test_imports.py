"""What a pod's launcher loads: it runs once a VM, so that each module is paid a hundred times a node."""

from __future__ import annotations

import subprocess
import sys

#: Top-level modules, beside the standard library's, that the launcher may load.
ALLOWED = {
    "kvnode",
    "libvirt",
    "libvirtmod",
    "libvirt_qemu",
    "libvirtmod_qemu",
    "grpc",
    "grpc_tools",  # loaded by grpc where it is installed, which is for development alone
    "google",
    "typing_extensions",  # grpc's
    "sitecustomize",
    "cython_runtime",
    "_cython_3_2_0",
}
#: Parts of the standard library that are heavy and not needed.
HEAVY = {
    "ssl",
    "_hashlib",
    "http",
    "email",
    "unittest",
    "multiprocessing",
    "sqlite3",
    "pydoc",
    "xmlrpc",
    "argparse",
    "doctest",
}


def loaded_by(script: str) -> set[str]:
    """Names of the modules that a script loads in a fresh interpreter, those that are told to be absent left out."""
    script = f"import sys; before = set(sys.modules); {script}; "
    script += (
        "print(*(name for name, module in sys.modules.items() if module is not None and name not in before))"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return set(output.split())


def test_the_launcher_loads_what_it_needs_and_nothing_else() -> None:
    loaded = loaded_by(
        "from kvnode.launcher.programs import launcher; launcher.forgo(); import kvnode.launcher.pod.session"
    )
    tops = {name.partition(".")[0] for name in loaded}
    foreign = {name for name in tops - set(sys.stdlib_module_names) - ALLOWED if not name.startswith("_")}
    assert foreign == set()
    assert loaded & HEAVY == set()
    parts = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("kvnode.")}
    assert parts & {"kvnode.cli", "kvnode.standalone"} == set()


def test_daemons_are_started_before_the_heavy_part_is_loaded() -> None:
    loaded = loaded_by("import kvnode.launcher.pod.main")
    assert not loaded & {"grpc", "google", "libvirt", "xml"}
