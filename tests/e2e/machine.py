"""A VM on the cluster without a controller: what it would do is done by hand, with kubectl."""

from __future__ import annotations

import json
import string
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from tests.cluster.cluster import SOURCE, Cluster
from tests.cluster.deploy import Kubectl
from tests.cluster.errors import ClusterError
from tests.cluster.images import BUSYBOX

MANIFESTS = Path(__file__).parent / "manifests"
Found = TypeVar("Found")
Shape = Callable[[dict[str, Any], str], dict[str, Any]]
FINALIZER = "foregroundDeleteVirtualMachine"
#: For all that a node does, however busy the machine is.
PATIENCE = 240.0


def wait_for(what: str, condition: Callable[[], Found], seconds: float = PATIENCE) -> Found:
    """The first true answer."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.5)
    return found


def start_neighbour(kubectl: Kubectl, namespace: str, node: str) -> str:
    """Run busybox on a node; the answer is the pod's name."""
    name = f"neighbour-{node}"
    container = {"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sleep", "100000"]}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    kubectl("apply", "-n", namespace, "-f", "-", given=json.dumps(body))
    kubectl("wait", "-n", namespace, f"pod/{name}", "--for=condition=Ready", f"--timeout={PATIENCE - 5:g}s")
    return name


class Machine:
    """A VMI, its launcher pod and its guest."""

    #: Changes the pod before it is made, given the VMI's UID.
    shape: Shape = staticmethod(lambda pod, _uid: pod)

    def __init__(self, cluster: Cluster, kubectl: Kubectl, namespace: str, name: str, node: str) -> None:
        self.cluster = cluster
        self.kubectl = kubectl
        self.namespace = namespace
        self.name = name
        self.node = node
        self.pod = f"virt-launcher-{name}"
        self._words = {"name": name, "namespace": namespace, "node": node}

    def create(self) -> None:
        """Make VMI and pod, and bind them to the node once the pod runs, as KubeVirt's controller does."""
        defaults = [
            sys.executable,
            "-m",
            "kvnode.cli",
            "defaults",
            "--config",
            str(MANIFESTS / "kubevirt.yaml"),
            "-",
        ]
        done = subprocess.run(
            defaults, input=self._manifest("vmi.yaml"), capture_output=True, text=True, check=True, cwd=SOURCE
        )
        self.kubectl("create", "-f", "-", given=done.stdout)
        self._patch({"metadata": {"finalizers": [FINALIZER]}})
        self._words["uid"] = self.vmi()["metadata"]["uid"]
        pod = self.shape(yaml.safe_load(self._manifest("launcher-pod.yaml")), self._words["uid"])
        self.kubectl("create", "-f", "-", given=json.dumps(pod))
        wait_for("the pod runs", lambda: self.pod_status().get("phase") == "Running")
        active = {self.pod_uid(): self.node}
        status = {"phase": "Scheduled", "nodeName": self.node, "activePods": active}
        self._patch({"metadata": {"labels": {"kubevirt.io/nodeName": self.node}}, "status": status})

    def await_up(self) -> None:
        """Wait until the guest has said that it is up, and the VMI that its agent answers."""
        wait_for("the guest is up", lambda: "kvnode-guest: up after" in self.console())
        wait_for("the guest agent is connected", lambda: "AgentConnected" in self.conditions())

    def vmi(self) -> Any:
        """The VMI."""
        return self.kubectl.get("vmi", "-n", self.namespace, self.name)

    def phase(self) -> str:
        """Its phase."""
        return str(self.vmi()["status"].get("phase"))

    def conditions(self) -> dict[str, str]:
        """Its conditions that are true or false, by type."""
        return {one["type"]: one["status"] for one in self.vmi()["status"].get("conditions", [])}

    def pod_status(self) -> Any:
        """The pod's status."""
        return self.kubectl.get("pod", "-n", self.namespace, self.pod)["status"]

    def pod_uid(self) -> str:
        """The pod's UID."""
        return str(self.kubectl.get("pod", "-n", self.namespace, self.pod)["metadata"]["uid"])

    def console(self) -> str:
        """What the guest wrote on its serial console, as the pod's log has it."""
        return self.kubectl("logs", "-n", self.namespace, self.pod, "-c", "guest-console-log")

    def qemu(self) -> tuple[str, str]:
        """QEMU's process on its node, and when it was started."""
        pattern = f"qemu-system-x86_64.*guest={self.namespace}_{self.name},"
        pid = self.cluster.run_on(self.node, "pgrep", "-f", pattern).strip()
        stat = self.cluster.run_on(self.node, "cat", f"/proc/{pid}/stat")
        return pid, stat.rpartition(")")[2].split()[19]

    def delete(self) -> None:
        """Tell VMI and pod to go, as a user and the controller do."""
        for kind, name in (("vmi", self.name), ("pod", self.pod)):
            self.kubectl("delete", kind, "-n", self.namespace, name, "--wait=false", "--ignore-not-found")

    def let_go(self) -> None:
        """Take the finalizer off, as the controller does in the end."""
        self._patch({"metadata": {"finalizers": []}})

    def remove(self) -> None:
        """Whatever state it is in: when this is done it is gone."""
        self.delete()
        try:
            self.let_go()
        except ClusterError as error:
            if "NotFound" not in str(error):
                raise
        self.await_gone()

    def await_gone(self) -> None:
        """Wait until the API server has neither VMI nor pod."""
        wait_for(
            "VMI and pod are gone",
            lambda: not self._there("vmi", self.name) and not self._there("pod", self.pod),
        )

    def _there(self, kind: str, name: str) -> str:
        return self.kubectl("get", kind, "-n", self.namespace, name, "--ignore-not-found", "-o", "name")

    def _manifest(self, name: str) -> str:
        return string.Template((MANIFESTS / name).read_text()).substitute(self._words)

    def _patch(self, patch: object) -> None:
        self.kubectl("patch", "vmi", "-n", self.namespace, self.name, "--type=merge", "-p", json.dumps(patch))
