"""Device plugins and a real kubelet: what a node offers, and what pods that ask for it get."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kvnode.agent.cgroups import groups_of
from kvnode.agent.devicerules import Rule, allow, deny
from kvnode.agent.domain import Domain
from kvnode.agent.housekeeping import give_back, isolate_helpers
from tests.agent.machinery import Machine
from tests.cluster.binaries import kubectl
from tests.cluster.cluster import SOURCE, Cluster, up
from tests.cluster.errors import ClusterError
from tests.cluster.fixtures import make_namespace
from tests.cluster.images import BUSYBOX

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="nodes need root"),
]

NODE = "node1"
CGROUPS = Path("/sys/fs/cgroup")
version_1 = pytest.mark.skipif(
    not (CGROUPS / "devices/devices.list").exists(), reason="needs control groups 1"
)
TUN, KVM, GPU = "devices.kubevirt.io/tun", "devices.kubevirt.io/kvm", "nvidia.com/TU104GL"
ADDRESS, GROUP = "0000:65:00.0", "45"
# A /dev that can be changed without the machine's other tenants noticing, with nodes for what VFIO would have.
OWN_DEV = f"""
set -e
mkdir /run/dev
mount -t tmpfs -o mode=755 dev /run/dev
cp -ax /dev/. /run/dev/
for name in pts shm; do mkdir -p /run/dev/$name; mount --bind /dev/$name /run/dev/$name; done
mount --rbind /run/dev /dev
mkdir -p /dev/net /dev/vfio
test -e /dev/net/tun || mknod -m 666 /dev/net/tun c 10 200
test -e /dev/kvm || mknod -m 666 /dev/kvm c 10 232
mknod -m 600 /dev/vfio/vfio c 10 196
mknod -m 600 /dev/vfio/{GROUP} c 240 0
"""
PERMITTED = {
    "permittedHostDevices": {"pciHostDevices": [{"pciVendorSelector": "10DE:1EB8", "resourceName": GPU}]}
}


class Rejected(Exception):  # noqa: N818
    """kubelet has not taken a pod."""


@dataclass
class Node:
    """A node whose devices are offered."""

    cluster: Cluster
    space: str
    plugins: subprocess.Popen[str]
    pods: int = 0

    def configure(self, configuration: dict[str, Any]) -> None:
        assert self.plugins.stdin is not None
        self.plugins.stdin.write(json.dumps(configuration) + "\n")
        self.plugins.stdin.flush()

    def pid(self, pod: str) -> int:
        """PID of the pod's container's first process, as the machine has it."""
        found: int = wait(lambda: self._pid(pod))
        return found

    def _pid(self, pod: str) -> int:
        found: Any = self.cluster.request("GET", f"/api/v1/namespaces/{self.space}/pods/{pod}")
        uid = found["metadata"]["uid"]
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                inside = uid in (entry / "cgroup").read_text()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if inside and command.startswith(b"sleep\0"):
                return int(entry.name)
        return 0

    def run(self, *argv: str) -> str:
        return self.cluster.run_on(NODE, *argv)

    def allocatable(self, resource: str) -> str | None:
        node: Any = self.cluster.request("GET", f"/api/v1/nodes/{NODE}")
        found: str | None = node["status"]["allocatable"].get(resource)
        return found

    def until(self, resource: str, count: str) -> None:
        wait(lambda: self.allocatable(resource) == count)

    def pod(self, *resources: str) -> str:
        """Start a pod that asks for one of each; the answer is its name."""
        self.pods += 1
        name = f"pod{self.pods}"
        container = {
            "name": "c",
            "image": BUSYBOX,
            "imagePullPolicy": "Never",
            "command": ["sleep", "100000"],
            "resources": {"limits": dict.fromkeys(resources, "1")},
        }
        body = {"terminationGracePeriodSeconds": 0, "containers": [container], "nodeName": NODE}
        path = f"/api/v1/namespaces/{self.space}/pods"
        self.cluster.request("POST", path, {"metadata": {"name": name}, "spec": body})

        def phase() -> Any:
            status = self.cluster.request("GET", f"{path}/{name}")["status"]
            if status.get("phase") == "Failed":
                raise Rejected(status.get("message"))
            return status.get("phase") == "Running"

        wait(phase)
        return name

    def inside(self, pod: str, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run one of busybox' programs in a pod."""
        program = kubectl(lambda _line: None)
        if program is None:
            pytest.skip("no kubectl")
        command: list[str | Path] = [
            program,
            f"--kubeconfig={self.cluster.kubeconfig}",
            "exec",
            "-n",
            self.space,
            pod,
            "--",
        ]
        command += ["/bin/busybox", *argv]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)

    def can_open(self, pod: str, device: str) -> str:
        """What the kernel says to a container that opens a device."""
        return self.inside(pod, "sh", "-c", f": <>{device}").stderr


def wait(condition: Callable[[], Any], seconds: float = 240) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return found


@contextmanager
def plugins(cluster: Cluster, sysfs: Path) -> Iterator[subprocess.Popen[str]]:
    """The plugins' process, in the node's namespaces."""
    command = cluster.node_command(NODE, [sys.executable, "-m", "tests.agent.offering", str(sysfs)])
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    ) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(120)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    cluster = up(lambda line: print(line, file=sys.stderr), nodes=1, crds=False)
    try:
        cluster.run_on(NODE, "sh", "-c", OWN_DEV)
        machine = Machine(tmp_path_factory.mktemp("machine"))
        machine.pci(ADDRESS, "10DE:1EB8", GROUP, numa_node="0")
        with plugins(cluster, machine.sysfs) as process:
            yield Node(cluster, make_namespace(cluster), process)
            assert process.poll() is None
    finally:
        cluster.down()


def test_the_node_offers_its_devices(node: Node) -> None:
    for resource in (TUN, KVM):
        node.until(resource, "5")


def test_a_pod_that_asks_for_devices_gets_them_and_no_other_does(node: Node) -> None:
    node.until(KVM, "5")
    node.until(TUN, "5")
    pod, other = node.pod(TUN, KVM), node.pod()
    assert node.inside(pod, "ls", "/dev/kvm", "/dev/net/tun").stdout.split() == ["/dev/kvm", "/dev/net/tun"]
    assert node.can_open(pod, "/dev/net/tun") == ""
    assert node.can_open(pod, "/dev/kvm") == ""
    assert "No such file" in node.inside(other, "ls", "/dev/kvm").stderr
    assert node.inside(other, "mknod", "/tmp/kvm", "c", "10", "232").returncode == 0
    assert "not permitted" in node.can_open(other, "/tmp/kvm")


def test_a_kubelet_that_starts_anew_is_told_again(node: Node) -> None:
    node.until(TUN, "5")
    socket = "/var/lib/kubelet/device-plugins/kubevirt-tun.sock"
    before = node.run("stat", "-c", "%i %z", socket)
    pid = node.run("pidof", "kubelet").strip()
    node.run("kill", "-9", pid)
    # kubelet empties its folder when it starts.
    wait(lambda: node.run("sh", "-c", f"stat -c '%i %z' {socket} || true") not in ("", before))
    pod = wait(lambda: _started(node, TUN))
    assert node.can_open(pod, "/dev/net/tun") == ""


def _started(node: Node, resource: str) -> str | None:
    """A pod, if kubelet has the resource by now."""
    try:
        return node.pod(resource)
    except Rejected:
        time.sleep(0.5)
        return None


def test_a_socket_that_is_taken_away_is_made_again(node: Node) -> None:
    node.until(TUN, "5")
    socket = "/var/lib/kubelet/device-plugins/kubevirt-tun.sock"
    node.run("rm", socket)
    wait(lambda: node.run("sh", "-c", f"ls {socket} || true"))
    pod = wait(lambda: _started(node, TUN))
    assert node.can_open(pod, "/dev/net/tun") == ""


def test_a_device_that_is_gone_cannot_be_had_until_it_is_back(node: Node) -> None:
    node.until(KVM, "5")
    node.run("mv", "/dev/kvm", "/dev/gone")
    node.until(KVM, "0")
    node.run("mv", "/dev/gone", "/dev/kvm")
    node.until(KVM, "5")
    assert node.can_open(node.pod(KVM), "/dev/kvm") == ""


@version_1
def test_a_container_is_allowed_a_device_and_loses_it_again(node: Node) -> None:
    """In the control group that the real container runtime has made."""
    pod = node.pod()
    node.inside(pod, "mknod", "/tmp/kvm", "c", "10", "232")
    groups = groups_of(node.pid(pod), root=CGROUPS)
    assert "not permitted" in node.can_open(pod, "/tmp/kvm")
    added = allow(groups, [Rule("c", "1", "3", "rw"), Rule("c", "10", "232", "rw")])
    assert list(map(str, added)) == ["c 10:232 rw"]
    assert node.can_open(pod, "/tmp/kvm") == ""
    deny(groups, added)
    assert "not permitted" in node.can_open(pod, "/tmp/kvm")


@version_1
def test_a_pod_whose_threads_were_moved_is_deleted_without_a_trace(node: Node) -> None:
    pod = node.pod()
    pid = node.pid(pod)
    groups = groups_of(pid, root=CGROUPS)
    folder = groups.folder("cpuset")
    cpus = (folder / "cpuset.cpus").read_text().strip()
    isolate_helpers(groups, Domain({"Spec": {"CPUTune": {"EmulatorPin": {"CPUSet": cpus}}}}))
    assert str(pid) in (folder / "housekeeping/tasks").read_text().split()
    node.cluster.request("DELETE", f"/api/v1/namespaces/{node.space}/pods/{pod}")
    wait(lambda: not folder.parent.exists())
    give_back(groups)


def test_a_gpu_is_offered_while_it_is_permitted(node: Node) -> None:
    assert node.allocatable(GPU) in (None, "0")
    node.configure(PERMITTED)
    node.until(GPU, "1")
    pod = node.pod(GPU)
    assert f"PCI_RESOURCE_NVIDIA_COM_TU104GL={ADDRESS}" in node.inside(pod, "env").stdout.splitlines()
    found = node.inside(pod, "stat", "-c", "%n %t:%T", "/dev/vfio/vfio", f"/dev/vfio/{GROUP}").stdout
    assert found.splitlines() == ["/dev/vfio/vfio a:c4", f"/dev/vfio/{GROUP} f0:0"]
    # The kernel has nothing behind them here; what matters is that the container may ask.
    assert "not permitted" not in node.can_open(pod, f"/dev/vfio/{GROUP}")
    node.run("rm", f"/dev/vfio/{GROUP}")
    node.until(GPU, "0")
    node.run("mknod", "-m", "600", f"/dev/vfio/{GROUP}", "c", "240", "0")
    node.until(GPU, "1")
    node.configure({})
    node.until(GPU, "0")
    with pytest.raises(ClusterError, match="No such file"):
        node.run("ls", "/var/lib/kubelet/device-plugins/kubevirt-nvidia.com_TU104GL.sock")
