"""A VirtualMachine on the cluster as a user has it: made, watched and ended with kubectl alone."""

from __future__ import annotations

import copy
import json
import string
from collections.abc import Callable
from typing import Any

import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.deploy import Kubectl
from tests.cluster.errors import ClusterError
from tests.e2e.machine import MANIFESTS, wait_for

UP = "kvnode-guest: up after"
# What somebody at the serial console would type. The console is a socket that QEMU holds; what was typed comes back.
_TYPE = """
import pathlib, socket, sys
[path] = pathlib.Path("/var/run/kubevirt-private").glob("*/virt-serial0")
line = sys.argv[1].encode()
with socket.socket(socket.AF_UNIX) as console:
    console.settimeout(60)
    console.connect(str(path))
    console.sendall(line + b"\\n")
    said = b""
    while line not in said and (more := console.recv(4096)):
        said += more
"""


class Vm:
    """A VM, its VMI and the pod of that."""

    def __init__(self, cluster: Cluster, kubectl: Kubectl, namespace: str, name: str, strategy: str) -> None:
        self.cluster = cluster
        self.kubectl = kubectl
        self.namespace = namespace
        self.name = name
        words = {"name": name, "namespace": namespace, "strategy": strategy}
        self.manifest: dict[str, Any] = yaml.safe_load(
            string.Template((MANIFESTS / "vm.yaml").read_text()).substitute(words)
        )

    def apply(self, change: Callable[[dict[str, Any]], None] = lambda _spec: None) -> None:
        """``kubectl apply`` it; ``change`` may change the template's spec before."""
        manifest = copy.deepcopy(self.manifest)
        change(manifest["spec"]["template"]["spec"])
        self.kubectl("apply", "-f", "-", given=json.dumps(manifest))

    def vm(self) -> Any:
        """The VM."""
        return self.kubectl.get("vm", "-n", self.namespace, self.name)

    def printed(self) -> str:
        """The VM's status in a word."""
        return str(self.vm().get("status", {}).get("printableStatus"))

    def vmi(self) -> Any:
        """The VMI, or None where there is none."""
        found = self.kubectl(
            "get", "vmi", "-n", self.namespace, self.name, "--ignore-not-found", "-o", "json"
        )
        return json.loads(found) if found else None

    def phase(self) -> str | None:
        """The VMI's phase; None without a VMI."""
        vmi = self.vmi()
        return str(vmi.get("status", {}).get("phase")) if vmi else None

    def uid(self) -> str:
        """The VMI's UID; empty without a VMI."""
        vmi = self.vmi()
        return str(vmi["metadata"]["uid"]) if vmi else ""

    def pods(self) -> list[Any]:
        """All pods of the VM that are there."""
        label = f"vm.kubevirt.io/name={self.name}"
        return list(self.kubectl.get("pods", "-n", self.namespace, "-l", label)["items"])

    def pod(self) -> Any:
        """The pod of the present VMI."""
        uid = self.uid()
        [found] = [pod for pod in self.pods() if pod["metadata"]["labels"]["kubevirt.io/created-by"] == uid]
        return found

    def node(self) -> str:
        """The node that the VMI runs on."""
        return str(self.vmi()["status"]["nodeName"])

    def console(self) -> str:
        """What the guest has written on its serial console; empty while there is none."""
        try:
            name = self.pod()["metadata"]["name"]
            return self.kubectl("logs", "-n", self.namespace, name, "-c", "guest-console-log")
        except (ClusterError, ValueError):
            return ""

    def await_up(self, after: str = "") -> str:
        """Wait until the guest of a VMI other than ``after`` is up and the VM Running; the answer is the VMI's UID."""
        wait_for(f"{self.name}: another VMI", lambda: self.uid() not in ("", after))
        wait_for(f"{self.name}: the guest is up", lambda: UP in self.console())
        wait_for(f"{self.name}: Running", lambda: self.printed() == "Running")
        return self.uid()

    def await_stopped(self, phase: str | None) -> None:
        """Wait until the VM is Stopped with a VMI of that phase, or without one."""
        wait_for(f"{self.name}: Stopped", lambda: self.printed() == "Stopped" and self.phase() == phase)

    def type(self, line: str) -> None:
        """Type a line on the guest's serial console, where a shell waits."""
        name = self.pod()["metadata"]["name"]
        self.kubectl("exec", "-n", self.namespace, name, "-c", "compute", "--", "python3", "-c", _TYPE, line)

    def power_off(self) -> None:
        """The guest powers itself off."""
        self.type("poweroff -f")

    def kill(self) -> None:
        """QEMU dies."""
        self.cluster.run_on(
            self.node(), "pkill", "-9", "-f", f"qemu-system.*guest={self.namespace}_{self.name},"
        )

    def request(self, *requests: dict[str, str]) -> None:
        """Ask for a start or stop as KubeVirt's verbs do: by the VM's status subresource."""
        patch = json.dumps({"status": {"stateChangeRequests": requests}})
        self.kubectl(
            *("patch", "vm", "-n", self.namespace, self.name),
            *("--subresource=status", "--type=merge", "-p", patch),
        )

    def remove(self) -> None:
        """``kubectl delete`` it and wait until neither VM nor VMI nor pod is there."""
        self.kubectl("delete", "vm", "-n", self.namespace, self.name, "--wait=false", "--ignore-not-found")
        left = ("get", "vm,vmi,pods", "-n", self.namespace, "--ignore-not-found", "-o", "name")
        wait_for(f"{self.name} is gone", lambda: f"{self.name}" not in self.kubectl(*left))
