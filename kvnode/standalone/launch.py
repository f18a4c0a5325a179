"""Start a VM's launcher in namespaces of its own, and wait for what it says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import kvnode
from kvnode.standalone import records
from kvnode.standalone.errors import EXIT_ENVIRONMENT, StandaloneError
from kvnode.standalone.sandbox import VM_DIRECTORY, Bind, Plan
from kvnode.standalone.state import VmDirectory

_POLL_SECONDS = 0.05
_ENDED = ("Succeeded", "Failed")


def launcher_command(vm: VmDirectory, uid: str, grace_seconds: float, huge_pages: bool) -> tuple[str, ...]:
    """Return the command of a VM's first process: the monitor, and the launcher that it starts."""
    monitor = Path(kvnode.__file__).parent / "launcher/monitor.py"
    launcher = [sys.executable, "-P", "-m", "kvnode.launcher", "--vm-directory", VM_DIRECTORY]
    launcher += ["--name", vm.name, "--namespace", vm.namespace, "--uid", uid]
    launcher += ["--grace-period-seconds", f"{grace_seconds:g}"]
    if huge_pages:
        launcher.append("--huge-pages")
    return (sys.executable, "-I", "-S", str(monitor), "--", *launcher)


def start_sandbox(
    vm: VmDirectory, command: Sequence[str], binds: tuple[Bind, ...], libvirt_cache: str, *, huge_pages: bool
) -> None:
    """Start ``command`` as the first process of new namespaces, away from this terminal and session.

    Returns when it is on record and has begun to set up; raises StandaloneError when it has not.
    """
    plan = Plan(str(vm.path), libvirt_cache, binds, huge_pages, tuple(command))
    environment = {key: os.environ[key] for key in ("PATH", "LANG", "TZ", "VIRTUAL_ENV") if key in os.environ}
    environment["PYTHONPATH"] = str(Path(kvnode.__file__).parent.parent)
    with (vm.path / "launcher.log").open("ab") as log:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "kvnode.standalone.sandbox", plan.to_json()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environment,
            start_new_session=True,
            check=False,
        )
    if done.returncode != 0:
        raise StandaloneError(
            f"the VM's namespaces cannot be set up: {last_line(vm.path / 'launcher.log')}",
            exit_code=EXIT_ENVIRONMENT,
        )


def wait_for(vm: VmDirectory, phases: Sequence[str], timeout: float) -> str:
    """Return the VM's phase once it is one of ``phases`` or an end, or its processes are gone.

    Returns ``""`` when ``timeout`` seconds have passed before that.
    """
    end = time.monotonic() + timeout
    while True:
        running = vm.process() is not None  # looked at first: the last status is written before the end
        phase = str((records.read_json(vm.path / "status.json") or {}).get("phase", ""))
        if phase in phases or phase in _ENDED or not running:
            return phase or "Failed"
        if time.monotonic() > end:
            return ""
        time.sleep(_POLL_SECONDS)


def last_line(path: Path) -> str:
    """Return the last line of a log, without its time; what it is called where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        lines = []
    full = [line.strip() for line in lines if line.strip()]
    return full[-1] if full else f"see {path}"
