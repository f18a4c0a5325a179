"""A launcher's manager and command server for tests, in mount and PID namespaces of its own, with real libvirt
and QEMU.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import kvnode
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.standalone import records
from kvnode.standalone.sandbox import Bind, Plan
from tests.standalone.helpers import kernel_vmi, wait_until

ROOT = Path(__file__).resolve().parents[3]
MONITOR = Path(kvnode.__file__).parent / "launcher/monitor.py"
START_SECONDS = 120.0
UID = "8b6a9a8e-7a3e-4b62-9f57-5b2a3f0a9d10"


def vmi(name: str = "vm", phase: str = "Scheduled", arguments: str = "", **spec: Any) -> dict[str, Any]:
    """A VMI that boots the demo guest's kernel, as an agent would send it."""
    made = kvnode.apply_defaults(kernel_vmi(name, arguments, **spec), "amd64", {})
    made["metadata"].update(namespace="default", uid=UID)
    made["status"] = {"phase": phase}
    return made


def as_json(instance: dict[str, Any]) -> bytes:
    """What goes over the wire."""
    return json.dumps(instance).encode()


class Pod:
    """One pod; :meth:`close` ends it and its guest."""

    def __init__(
        self,
        binds: Sequence[Bind] = (),
        module: str = "tests.launcher.manager.pod_main",
        own_network: bool = False,
        **options: Any,
    ) -> None:
        """Start it and wait for its socket; ``options`` are more of ManagerOptions."""
        self.directory = Path(tempfile.mkdtemp(prefix="kvnode-"))  # short: sockets lie in it
        self.run = self.directory / "run"
        for part in ("run", "etc", "lib", "log", "cache"):
            (self.directory / part).mkdir()
        given = {"uid": UID, "allow_emulation": True, "kvm": False, "standalone": True, "vm_stats": True}
        made = ManagerOptions("default", "vm", **{**given, **options})
        program = [sys.executable, "-P", "-m", module]
        text = json.dumps(asdict(made), default=str)
        command = (sys.executable, "-I", "-S", str(MONITOR), "--", *program, text)
        plan = Plan(str(self.directory), str(self.directory / "cache"), tuple(binds), False, command)
        self._log = (self.directory / "pod.log").open("wb")
        self._starter = subprocess.Popen(
            [
                *(["unshare", "--net"] if own_network else []),
                *(sys.executable, "-P", "-m", "kvnode.standalone.sandbox", plan.to_json()),
            ],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.socket = self.path("/run/kubevirt/sockets/launcher-sock")
        try:
            assert self._starter.wait(START_SECONDS) == 0, self.log()
            wait_until(self.socket.exists, START_SECONDS, "the pod's socket")
        except BaseException:
            print(self.log())
            self.close()
            raise

    @property
    def serial_log(self) -> Path:
        """What the guest prints."""
        return self.path(f"/run/kubevirt-private/{UID}/virt-serial0-log")

    def path(self, inside: str) -> Path:
        """Where a path that the pod sees under /run lies on this machine."""
        return self.run / inside.removeprefix("/var").removeprefix("/run/")

    def ip(self, *arguments: str) -> None:
        """Run ``ip`` in the pod's network."""
        process = records.read_process(self.directory / records.LAUNCHER_PID)
        assert process is not None
        subprocess.run(["nsenter", "--target", str(process.pid), "--net", "ip", *arguments], check=True)

    def log(self) -> str:
        """What the pod said."""
        return (self.directory / "pod.log").read_text(errors="replace")

    def close(self) -> None:
        """End every process in the namespaces and remove the directory."""
        process = records.read_process(self.directory / records.LAUNCHER_PID)
        if process is not None:
            records.send_signal(process, signal.SIGKILL)
            wait_until(lambda: not records.alive(process), 120, "the end of the pod's processes")
        if self._starter.stdin is not None:
            self._starter.stdin.close()
        self._starter.wait(120)
        self._log.close()
        shutil.rmtree(self.directory, ignore_errors=True)
