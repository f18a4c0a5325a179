"""The whole cluster: pods run on two nodes, reach each other and the API server, and leave no trace."""

from __future__ import annotations

import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import cgroups
from tests.cluster.binaries import kubectl
from tests.cluster.cluster import Cluster, sweep, up
from tests.cluster.errors import ClusterError
from tests.cluster.fixtures import make_namespace
from tests.cluster.images import BUSYBOX
from tests.cluster.test_control_plane import processes_of, quiet, wait_until_gone
from tools.images.oci import write_archive

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="nodes need root"),
]


def wait_for(condition: Callable[[], Any], seconds: float = 180) -> Any:
    """The first true answer."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return found


def start_pod(cluster: Cluster, namespace: str, name: str, node: str, **spec: Any) -> str:
    """Run busybox on a node; the answer is the pod's address."""
    container = {
        "name": "c",
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sleep", "100000"],
        **spec.pop("container", {}),
    }
    body = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    path = f"/api/v1/namespaces/{namespace}/pods"
    cluster.request("POST", path, {"metadata": {"name": name}, "spec": body})

    def running() -> Any:
        status = cluster.request("GET", f"{path}/{name}")["status"]
        return status.get("phase") == "Running" and status.get("podIP")

    return str(wait_for(running))


def in_pod(cluster: Cluster, namespace: str, name: str, *argv: str) -> str:
    """Run a command in a pod, through kubectl, the API server and kubelet."""
    program = kubectl(quiet)
    if program is None:
        pytest.skip("no kubectl")
    command = [str(program), f"--kubeconfig={cluster.kubeconfig}", "exec", "-n", namespace, name, "--", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=180).stdout


def said_in_pod(cluster: Cluster, namespace: str, name: str, *argv: str) -> str:
    """The same, of a command that may fail yet: what it said, empty then."""
    try:
        return in_pod(cluster, namespace, name, *argv)
    except subprocess.CalledProcessError:
        return ""


@pytest.fixture(scope="module")
def space(two_nodes: Cluster) -> str:
    return make_namespace(two_nodes)


def test_pods_of_two_nodes_reach_each_other(two_nodes: Cluster, space: str) -> None:
    start_pod(two_nodes, space, "one", "node1")
    address = start_pod(two_nodes, space, "two", "node2")
    said = wait_for(lambda: said_in_pod(two_nodes, space, "one", "ping", "-c", "2", address))
    assert " 0% packet loss" in said


def test_a_pod_reaches_the_api_server_by_its_service(two_nodes: Cluster, space: str) -> None:
    """With the service account's token and authority that kubelet mounts."""
    start_pod(two_nodes, space, "client", "node2")
    found = in_pod(two_nodes, space, "client", "ls", "/var/run/secrets/kubernetes.io/serviceaccount")
    assert found.split() == ["ca.crt", "namespace", "token"]
    ask = "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 10.96.0.1 443"
    # A node is ready before its services are.
    wait_for(
        lambda: "HTTP request to an HTTPS server" in said_in_pod(two_nodes, space, "client", "sh", "-c", ask)
    )


def test_the_scheduler_places_a_pod(two_nodes: Cluster, space: str) -> None:
    start_pod(two_nodes, space, "anywhere", "")


def test_host_paths_of_two_nodes_never_meet(two_nodes: Cluster, space: str) -> None:
    volume = {"name": "v", "hostPath": {"path": "/var/run/kubevirt", "type": "DirectoryOrCreate"}}
    mounted = {
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "securityContext": {"privileged": True},
    }
    start_pod(two_nodes, space, "writer", "node1", volumes=[volume], container=mounted)
    in_pod(two_nodes, space, "writer", "touch", "/v/here")
    assert two_nodes.run_on("node1", "ls", "/var/run/kubevirt") == "here\n"
    with pytest.raises(ClusterError, match="No such file"):
        two_nodes.run_on("node2", "ls", "/var/run/kubevirt")
    assert not Path("/var/run/kubevirt/here").exists()


def test_an_image_is_a_volume(two_nodes: Cluster, space: str) -> None:
    """As launcher pods use it, for a user that is not root."""
    volume = {"name": "v", "image": {"reference": BUSYBOX, "pullPolicy": "Never"}}
    mounted = {
        "volumeMounts": [{"name": "v", "mountPath": "/image"}],
        "securityContext": {"runAsUser": 107, "runAsGroup": 107},
    }
    start_pod(two_nodes, space, "image-volume", "node1", volumes=[volume], container=mounted)
    assert "qemu:x:107" in in_pod(two_nodes, space, "image-volume", "cat", "/image/etc/passwd")


def test_an_archive_is_loaded_into_every_node(two_nodes: Cluster, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    write_archive(tmp_path / "root.tar", tmp_path / "image.tar", "kvnode.test/empty:3")
    two_nodes.load_image(tmp_path / "image.tar")
    for node in two_nodes.plan.node_names:
        ctr = two_nodes.plan.programs["ctr"]
        assert "kvnode.test/empty:3" in two_nodes.run_on(node, ctr, "-n", "k8s.io", "images", "ls", "-q")


def test_kubelet_is_started_again(two_nodes: Cluster) -> None:
    pid = two_nodes.run_on("node2", "pidof", "kubelet").strip()
    two_nodes.run_on("node2", "kill", "-9", pid)
    wait_for(lambda: two_nodes.run_on("node2", "sh", "-c", "pidof kubelet || true").strip() not in ("", pid))
    wait_for(lambda: two_nodes.run_on("node2", "ls", "/var/lib/kubelet/device-plugins").split())


def test_the_machine_s_own_network_is_not_touched(two_nodes: Cluster) -> None:
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    assert not [name for name in ("kvbr0", "node1", "cni0") if name in links]
    routes = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
    assert "10.244." not in routes
    assert "10.77." not in routes
    assert not list(Path("/run/netns").glob("node*"))


def test_two_clusters_a_crash_and_no_trace(two_nodes: Cluster, home: Path) -> None:
    """A second cluster beside the first; one of its nodes dies, then its keeper is killed."""
    other = up(quiet, "second", nodes=2, crds=False)
    try:
        space = make_namespace(other)
        start_pod(other, space, "one", "node1")
        other.crash_node("node1")
        wait_for(lambda: not processes_of(other.plan.root / "node1"))
        assert start_pod(other, space, "two", "node2")
        assert two_nodes.api.ready()
        pid = other.keeper_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until_gone(other.plan.root, files_too=False)
        os.utime(other.plan.root / "plan.json", (0, 0))
        assert list(sweep()) == ["second"]
    finally:
        other.down()
    assert list(home.iterdir()) == []
    assert not list(cgroups.ROOT.glob("*/kvnode-second-*"))
    assert not list(cgroups.ROOT.glob("kvnode-second-*"))
    mounts = Path("/proc/mounts").read_text()
    assert str(home) not in mounts
