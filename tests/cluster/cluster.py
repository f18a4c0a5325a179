"""Bring clusters up, find them again, take them away: the owner's side."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.cluster import binaries, cgroups, host
from tests.cluster.api import Api
from tests.cluster.binaries import Say
from tests.cluster.crds import apply_crds
from tests.cluster.errors import ClusterError
from tests.cluster.keeper import DIED, remove_directory
from tests.cluster.kubeconfig import server_of
from tests.cluster.pki import Pair
from tests.cluster.plan import Plan, home

SOURCE = Path(__file__).parents[2]


class Cluster:
    """A cluster that is up, or was."""

    def __init__(self, plan: Plan, keeper: subprocess.Popen[str] | None = None) -> None:
        """``keeper`` is given by whoever started it."""
        self.plan = plan
        self._keeper = keeper

    @property
    def name(self) -> str:
        """Its name."""
        return self.plan.name

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.plan.kubeconfig

    @property
    def server(self) -> str:
        """The API server's URL, on loopback."""
        return server_of(self.kubeconfig)

    @property
    def ca(self) -> Path:
        """The authority that the API server's certificate is of."""
        return self.plan.root / "pki" / "ca.crt"

    @property
    def admin(self) -> Pair:
        """The administrator's certificate."""
        return Pair(self.plan.root / "pki" / "admin.crt", self.plan.root / "pki" / "admin.key")

    @property
    def api(self) -> Api:
        """Plain calls as administrator."""
        return Api(self.server, self.ca, self.admin)

    def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> Any:
        """One call; see `Api.request`."""
        return self.api.request(method, path, body, content_type)

    def keeper_pid(self) -> int | None:
        """The keeper's process, if it lives."""
        return _find(["tests.cluster.keeper", self.plan.directory])

    def pid_of(self, program: str) -> int:
        """The process of one of the control plane's programs, to stop (SIGSTOP), let go on or kill.

        Raises:
            ClusterError: it does not run.
        """
        for pid, command in _commands():
            if Path(command[0]).name == program and any(self.plan.directory in word for word in command):
                return pid
        raise ClusterError(f"cluster {self.name} runs no {program}")

    def node_pid(self, node: str) -> int:
        """A node's first process, as the machine numbers it.

        Raises:
            ClusterError: there is no such node, or it is dead.
        """
        pid = _find(["tests.cluster.node", self.plan.directory, node])
        if pid is None:
            raise ClusterError(f"cluster {self.name} has no living node {node!r}")
        return pid

    def node_command(self, node: str, argv: Sequence[str]) -> list[str]:
        """The command that runs ``argv`` inside a node."""
        return ["nsenter", "-t", str(self.node_pid(node)), "-m", "-n", "-p", "-i", "-u", "--", *argv]

    def run_on(self, node: str, *argv: str) -> str:
        """Run a command inside a node; the answer is what it wrote.

        Raises:
            ClusterError: it failed.
        """
        done = subprocess.run(self.node_command(node, argv), capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"{node}: `{' '.join(argv)}`: {done.stderr.strip()[-400:]}")
        return done.stdout

    def load_image(self, archive: Path) -> None:
        """Import an OCI archive into every node; raises ClusterError."""
        self.load_images([archive])

    def load_images(self, archives: Sequence[Path]) -> None:
        """Import OCI archives into every node, all nodes at once.

        Raises:
            ClusterError: a node could not.
        """

        def load(node: str) -> None:
            for archive in archives:
                self.run_on(node, self.plan.programs["ctr"], "-n", "k8s.io", "images", "import", str(archive))

        with ThreadPoolExecutor(max_workers=max(1, self.plan.nodes)) as pool:
            list(pool.map(load, self.plan.node_names))

    def crash_node(self, node: str) -> None:
        """Kill a node as a power cut would."""
        os.kill(self.node_pid(node), signal.SIGKILL)

    def keep(self) -> None:
        """Let it outlive this process, which brought it up; one that was found does already."""
        if self._keeper is not None:
            assert self._keeper.stdin is not None
            self._keeper.stdin.write("keep\n")
            self._keeper.stdin.flush()

    def down(self) -> None:
        """Take the cluster away; nothing to do is no error."""
        pid = self.keeper_pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            _wait_gone(pid, self._keeper)
        if self._keeper is not None:
            for pipe in (self._keeper.stdin, self._keeper.stdout):
                if pipe is not None:
                    pipe.close()
            self._keeper.wait(120)
        _sweep(self.plan)


def up(
    say: Say, name: str = "", *, nodes: int = 0, keep: bool = False, audit: bool = False, crds: bool = True
) -> Cluster:
    """Bring a cluster up and wait until it and its nodes are ready.

    Arguments:
        name: of the cluster; by default a fresh one
        nodes: how many; none is the control plane alone, which needs no root
        keep: it outlives this process
        audit: let the API server write an audit log
        crds: install deploy/crds

    Raises:
        ClusterError: it exists, the machine lacks something, or something failed.
    """
    host.check(nodes)
    sweep()
    name = name or f"t{secrets.token_hex(4)}"
    host.check_name(name)
    if nodes:
        host.allow_watchers(say)
    wanted = binaries.EVERYTHING if nodes else binaries.CONTROL_PLANE
    programs = {program: str(path) for program, path in binaries.ensure(wanted, say).items()}
    root = home() / name
    try:
        root.mkdir(parents=True, mode=0o755)
    except FileExistsError:
        raise ClusterError(f"there is a cluster {name} already; `down {name}` takes it away") from None
    plan = Plan(name, nodes, audit, programs, str(root))
    plan.save()
    keeper = _start_keeper(plan)
    cluster = Cluster(plan, keeper)
    try:
        _await_ready(keeper, say)
        if crds:
            apply_crds(cluster.api)
        if keep:
            cluster.keep()
    except BaseException:
        cluster.down()
        raise
    return cluster


def _start_keeper(plan: Plan) -> subprocess.Popen[str]:
    with (plan.root / "keeper.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.keeper", plan.directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # a Ctrl-C is the owner's business
            env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
        )


def _await_ready(keeper: subprocess.Popen[str], say: Say) -> None:
    assert keeper.stdout is not None
    for line in keeper.stdout:
        word, _, rest = line.strip().partition(" ")
        if word == "ready":
            return
        if word == "failed":
            raise ClusterError(rest)
        say(rest)
    raise ClusterError("the cluster's keeper ended without a word")


def find(name: str) -> Cluster:
    """The cluster of that name.

    Raises:
        ClusterError: there is none.
    """
    host.check_name(name)
    if not (home() / name / "plan.json").exists():
        known = ", ".join(cluster.name for cluster in clusters()) or "none is up"
        raise ClusterError(f"there is no cluster {name!r} ({known})")
    return Cluster(Plan.load(home() / name))


def clusters() -> list[Cluster]:
    """All clusters of this user that a keeper holds up."""
    return [cluster for cluster in _planned() if cluster.keeper_pid() is not None]


def _planned() -> Iterator[Cluster]:
    """Those that have a plan, but for what another process is just making or clearing away."""
    for path in sorted(home().glob("*/plan.json")):
        with contextlib.suppress(OSError, ValueError, TypeError):
            yield Cluster(Plan.load(path.parent))


def sweep() -> dict[str, str]:
    """Clear away what is left of clusters that nobody holds up; the answer is their names, and why they ended."""
    swept = {}
    for cluster in _planned():
        if cluster.keeper_pid() is None and (why := _end_of(cluster.plan)):
            swept[cluster.name] = why
            _sweep(cluster.plan)
    return swept


def _end_of(plan: Plan) -> str:
    """Why a cluster without a keeper ended; empty of one that is only just being made, or cleared away by another."""
    with contextlib.suppress(FileNotFoundError):
        return (plan.root / DIED).read_text().strip()
    with contextlib.suppress(FileNotFoundError):
        if time.time() - (plan.root / "plan.json").stat().st_mtime > 10:
            return "its keeper was killed"
    return ""


def _sweep(plan: Plan) -> None:
    if plan.nodes and os.geteuid() == 0:
        cgroups.remove(plan)
    if plan.root.exists():
        remove_directory(plan.root)


def _commands() -> Iterator[tuple[int, list[str]]]:
    """Processes and their command lines."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (words := _command_of(int(entry.name))):
            yield int(entry.name), words


def _command_of(pid: int) -> list[str]:
    """A process's command line; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def _find(words: list[str]) -> int | None:
    """The Python process whose command line ends with ``-m`` and these words."""
    ending = ["-m", *words]
    for pid, command in _commands():
        # unshare and nsenter, which have it on their command lines too, are not it.
        if command[-len(ending) :] == ending and "python" in Path(command[0]).name:
            return pid
    return None


def _wait_gone(pid: int, keeper: subprocess.Popen[str] | None) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if keeper is not None and keeper.poll() is not None:
            return
        if not _command_of(pid):  # a dead one whose parent has not looked has none either
            return
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def disk_use(plan: Plan) -> int:
    """Bytes that a cluster's files take."""
    du = shutil.which("du")
    if du is None:
        return 0
    done = subprocess.run([du, "-sk", plan.directory], capture_output=True, text=True, check=False)
    return int((done.stdout.split() or ["0"])[0]) * 1024
