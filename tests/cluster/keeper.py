"""``python -m tests.cluster.keeper DIRECTORY``: the process that holds one cluster up, and clears it away.

It says on its standard output how far it is (``say ...``), then ``ready`` or ``failed ...``. Its standard input is
its owner's hand: when that closes, the cluster goes, unless the owner wrote ``keep`` before. Its children die
with it, by the kernel's hand; what only a living process can clear away (files, cgroups) the next use of the
tool sweeps up.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from tests.cluster import cgroups, controlplane, kubeconfig
from tests.cluster.controlplane import Credentials, Ports
from tests.cluster.errors import ClusterError
from tests.cluster.plan import Plan
from tests.cluster.processes import Processes

ATTEMPTS = 3
DIED = "died"
"""File that says why a cluster ended that was not told to."""


class Keeper:
    """One cluster's life."""

    def __init__(self, plan: Plan) -> None:
        """Nothing is started yet."""
        self.plan = plan
        self.processes = Processes(plan.root / "logs")
        self.stopping = threading.Event()

    def run(self) -> int:
        """Bring the cluster up, wait for the order to end, clear it away."""
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        threading.Thread(target=self._heed_owner, daemon=True).start()
        try:
            try:
                if self.plan.nodes:
                    self._start_whole()
                else:
                    self._start_control_plane()
            except ClusterError as error:
                self._clear()
                if self.stopping.is_set():
                    return 0
                tell(f"failed {error}")
                return 1
            (self.plan.root / "ready").touch()
            tell("ready")
            while not self.stopping.wait(0.5):
                self.processes.check()
        except ClusterError as error:
            # Nobody waits for a word any more: it is left for whoever asks what became of the cluster.
            self.processes.stop()
            cgroups.remove(self.plan)
            (self.plan.root / DIED).write_text(f"{error}\n")
            return 1
        except BaseException:
            self._clear()
            raise
        self._clear()
        return 0

    def _heed_owner(self) -> None:
        kept = False
        for line in sys.stdin:
            kept = kept or line.strip() == "keep"
        if not kept:
            self.stopping.set()

    def _start_control_plane(self) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                # In one cluster's directory a second authority would only confuse.
                shutil.rmtree(self.plan.root / "etcd", ignore_errors=True)
                credentials = Credentials.make(self.plan)
                api = controlplane.start(self.plan, credentials, Ports.free(), _stoppable(self))
                self._write_kubeconfig(credentials, api.server)
            except ClusterError:
                self.processes.stop()
                if attempt == ATTEMPTS or self.stopping.is_set():
                    raise
                tell("say a port was taken meanwhile, or a program ended; once more")
            else:
                return

    def _start_whole(self) -> None:
        root = self.plan.root
        cgroups.make(self.plan)
        credentials = Credentials.make(self.plan)
        for node in self.plan.node_names:
            credentials.kubelet(node)
        # Made here, listened on inside: who connects is in the machine's network, who answers in the cluster's.
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
            self._write_kubeconfig(credentials, f"https://127.0.0.1:{listener.getsockname()[1]}")
            self.processes.start(
                "cluster",
                [
                    *("unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child"),
                    *("--mount-proc", "--propagation", "private"),
                    *(sys.executable, "-m", "tests.cluster.inside", root, str(listener.fileno())),
                ],
                fds=(listener.fileno(),),
            )
        controlplane.wait_for((root / "inside-ready").exists, _stoppable(self), "the cluster", seconds=480)

    def _write_kubeconfig(self, credentials: Credentials, server: str) -> None:
        ca = credentials.authority.ca.certificate
        kubeconfig.write(self.plan.kubeconfig, f"kvnode-{self.plan.name}", server, ca, credentials.admin)

    def _clear(self) -> None:
        self.processes.stop()
        cgroups.remove(self.plan)
        remove_directory(self.plan.root)


class _stoppable(Processes):  # noqa: N801 — a view, not a kind
    """A keeper's processes, whose check also heeds the order to end."""

    def __init__(self, keeper: Keeper) -> None:
        self.logs = keeper.processes.logs
        self.running = keeper.processes.running
        self._stopping = keeper.stopping

    def check(self) -> None:
        if self._stopping.is_set():
            raise ClusterError("told to end")
        super().check()


def remove_directory(root: Path) -> None:
    """Remove a cluster's files; processes that are just dying may hold some for a moment."""
    for _ in range(50):
        shutil.rmtree(root, ignore_errors=True)
        if not root.exists():
            return
        time.sleep(0.1)
    print(f"{root} could not be removed", file=sys.stderr)


def tell(line: str) -> None:
    """Say something to the owner, if there still is one."""
    with contextlib.suppress(BrokenPipeError):
        print(line, flush=True)


if __name__ == "__main__":
    os.chdir("/")
    sys.exit(Keeper(Plan.load(Path(sys.argv[1]))).run())
