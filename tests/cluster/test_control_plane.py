"""The control plane alone: real, several side by side, gone with its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import cluster
from tests.cluster.__main__ import main
from tests.cluster.cluster import SOURCE, Cluster, up
from tests.cluster.errors import ClusterError
from tests.cluster.fixtures import make_namespace

pytestmark = pytest.mark.cluster


def quiet(_line: str) -> None:
    """Say nothing."""


def processes_of(root: Path) -> list[str]:
    """Command lines that name a cluster's directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if str(root) in command and state != "Z":
                found.append(command)
    return found


def wait_until_gone(root: Path, files_too: bool = True) -> None:
    deadline = time.monotonic() + 120
    while processes_of(root) or (files_too and root.exists()):
        assert time.monotonic() < deadline, (processes_of(root), root.exists())
        time.sleep(0.1)


def test_it_serves_kubernetes_and_the_definitions(control_plane: Cluster) -> None:
    assert control_plane.request("GET", "/version")["gitVersion"] == "v1.36.3"
    for plural in ("virtualmachines", "virtualmachineinstances", "kubevirts"):
        assert control_plane.request("GET", f"/apis/kubevirt.io/v1/{plural}")["items"] == []


def test_a_pod_can_be_made(control_plane: Cluster) -> None:
    namespace = make_namespace(control_plane)
    container = {"name": "c", "image": "x", "securityContext": {"privileged": True}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
    made = control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    assert made["status"]["phase"] == "Pending"


def test_only_certificates_of_its_authority_are_taken(control_plane: Cluster) -> None:
    curl = ["curl", "-s", "--cacert", str(control_plane.ca), f"{control_plane.server}/api/v1/nodes"]
    answer = subprocess.run(curl, capture_output=True, text=True, check=True).stdout
    assert '"code": 403' in answer or '"code": 401' in answer
    assert oct(control_plane.kubeconfig.stat().st_mode)[-3:] == "600"


def test_a_name_is_taken_once(control_plane: Cluster) -> None:
    with pytest.raises(ClusterError, match=f"there is a cluster {control_plane.name} already"):
        up(quiet, control_plane.name)
    assert control_plane.api.ready()


@pytest.fixture
def another(home: Path) -> Iterator[Cluster]:
    """A second one beside."""
    one = up(quiet, "another", crds=False, audit=True)
    yield one
    one.down()
    assert processes_of(home) == []
    assert list(home.iterdir()) == []


def test_several_live_side_by_side(control_plane: Cluster, another: Cluster) -> None:
    make_namespace(another, "only-here")
    names = {item["metadata"]["name"] for item in control_plane.request("GET", "/api/v1/namespaces")["items"]}
    assert "only-here" not in names
    assert another.server != control_plane.server
    log = (another.plan.root / "audit.log").read_text()
    assert '"userAgent":"kvnode-test-cluster"' in log


OWNER = """
import sys, time
from tests.cluster.cluster import up
one = up(lambda line: None, "owned", crds=False)
print(one.plan.directory, flush=True)
time.sleep(1000)
"""


@pytest.mark.usefixtures("home")
def test_a_killed_owner_leaves_nothing() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=SOURCE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    with owner.stdout:
        root = Path(owner.stdout.readline().strip())
    assert processes_of(root)
    owner.kill()
    owner.wait()
    wait_until_gone(root)


@pytest.mark.usefixtures("home")
def test_an_owner_killed_while_it_comes_up_leaves_nothing(home: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=SOURCE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not processes_of(home / "owned"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    owner.kill()
    owner.communicate()
    wait_until_gone(home / "owned")


def test_a_killed_keeper_leaves_files_that_the_next_use_sweeps(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = up(quiet, "short", crds=False)
    pid = one.keeper_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(one.plan.root, files_too=False)
    os.utime(one.plan.root / "plan.json", (0, 0))
    assert main(["status"]) == 0
    assert capsys.readouterr().out == "short: dead (its keeper was killed), cleared away\nno cluster is up\n"
    assert list(home.iterdir()) == []
    one.down()


@pytest.mark.usefixtures("home")
def test_a_cluster_that_is_half_there_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    one = up(quiet, "short", crds=False)
    one.kubeconfig.unlink()
    assert main(["status"]) == 0
    assert capsys.readouterr().out == "short: coming up or going down\n"
    one.down()


def test_a_cluster_whose_program_dies_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = up(quiet, "short", crds=False)
    os.kill(one.pid_of("etcd"), signal.SIGKILL)
    wait_until_gone(one.plan.root, files_too=False)
    assert main(["status"]) == 0
    assert "short: dead (etcd ended with code -9: " in capsys.readouterr().out
    assert list(home.iterdir()) == []
    with pytest.raises(ClusterError, match="runs no etcd"):
        one.pid_of("etcd")
    one.down()


@pytest.mark.usefixtures("home")
def test_the_command_brings_up_and_takes_away(capfd: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "tests.cluster"]
    subprocess.run([*command, "up", "by-hand", "--nodes", "0"], cwd=SOURCE, check=True)
    kubeconfig = cluster.find("by-hand").kubeconfig
    out, err = capfd.readouterr()
    assert out.startswith(f"export KUBECONFIG={kubeconfig}\n")
    assert "by-hand is ready: no nodes, API server at https://127.0.0.1:" in err
    assert [one.name for one in cluster.clusters()] == ["by-hand"], "it outlives the command"
    subprocess.run([*command, "up", "by-hand", "--nodes", "0", "--if-absent"], cwd=SOURCE, check=True)
    assert "by-hand is up already" in capfd.readouterr().err
    subprocess.run([*command, "down", "by-hand"], cwd=SOURCE, check=True)
    assert processes_of(kubeconfig.parent) == []
    assert not kubeconfig.parent.exists()
