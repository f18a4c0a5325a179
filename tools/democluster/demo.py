"""The steps of the demo."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tests.cluster.cluster import SOURCE, Cluster, clusters, find, up
from tests.cluster.deploy import NAMESPACE, Kubectl, deploy_all, load_images
from tests.cluster.errors import ClusterError
from tests.cluster.images import BUSYBOX
from tools.democluster.terminal import Terminal

NAME = "demo"
"""The cluster's."""
MACHINE = "demo-vm"
MANIFEST = "examples/vm-demo.yaml"
UP = "kvnode-guest: up after"
PATIENCE = 600.0
"""Seconds that a machine under load may take for a step."""
_FIGURE = re.compile(
    r'kubevirt_vmi_memory_overhead_(requested|used|headroom)_bytes\{[^}]*name="([^"]+)"[^}]*\} (\S+)'
)

Found = TypeVar("Found")


class Demo:
    """One run."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._kubectl: Kubectl

    def run(self, *, keep: bool) -> None:
        """All of it. Unless ``keep`` holds and all went well, the cluster is gone afterwards.

        Raises:
            ClusterError: the machine lacks something, or a step failed.
        """
        say = self._terminal.say
        cluster = self._cluster()
        kept = False
        try:
            load_images(cluster, say)
            deploy_all(cluster, say)
            self._kubectl = Kubectl(cluster, say)
            self._show("get", "pods", "-n", NAMESPACE, "-o", "wide")
            self._start()
            self._look(cluster)
            if keep:
                cluster.keep()
                kept = True
            else:
                self._end()
        finally:
            if not kept:
                say(f"taking the cluster {NAME} away")
                cluster.down()
        if kept:
            self._farewell(cluster)
        else:
            say("done: nothing is left")

    def _cluster(self) -> Cluster:
        if any(one.name == NAME for one in clusters()):
            self._terminal.say(f"the cluster {NAME} is up already")
            return find(NAME)
        return up(self._terminal.say, NAME, nodes=2)

    def _start(self) -> None:
        self._show("apply", "-f", MANIFEST)
        told = ""

        def running() -> bool:
            nonlocal told
            state = self._state()
            if state != told:
                self._terminal.say(state)
                told = state
            return "VM Running" in state

        self._await("the VM runs", running)
        self._terminal.say("QEMU runs; its guest, which is emulated, takes some time to boot")
        self._await("the guest is up", lambda: UP in self._console())
        self._show("get", "vm,vmi,pods", "-o", "wide")
        self._terminal.command(f"kubectl logs {self._pod()} -c guest-console-log")
        self._terminal.show(
            "\n".join(x for x in self._console().splitlines() if x.startswith("kvnode-guest:"))
        )

    def _look(self, cluster: Cluster) -> None:
        vmi = self._kubectl.get("vmi", MACHINE)["status"]
        address = vmi["interfaces"][0]["ipAddress"]
        other = next(node for node in cluster.plan.node_names if node != vmi["nodeName"])
        self._terminal.say(f"from a pod on {other}:")
        self._start_neighbour(other)
        self._show("exec", "neighbour", "--", "ping", "-c", "3", "-W", "5", address)
        self._memory(vmi["nodeName"])

    def _memory(self, node: str) -> None:
        agent = self._agent(node)
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{agent['metadata']['name']}:8185/proxy/metrics"

        def figures() -> dict[str, float]:
            found = _FIGURE.findall(self._kubectl("get", "--raw", path))
            return {kind: float(number) for kind, name, number in found if name == MACHINE}

        found = self._await("figures of memory", figures)
        mib = {kind: f"{number / 2**20:.0f} MiB" for kind, number in found.items()}
        self._terminal.say(
            f"memory beside the guest's own: {mib['used']} of the {mib['requested']} that the pod requests for it; "
            f"by process: http://{agent['status']['podIP']}:8185/, the page of the agent on {node}"
        )

    def _end(self) -> None:
        self._show("delete", "-f", MANIFEST, "--timeout=180s")
        self._kubectl("delete", "pod", "neighbour", "--ignore-not-found", "--wait=false")
        gone = ("get", "vm,vmi,pods", "-o", "name")
        self._await("nothing is left", lambda: MACHINE not in self._kubectl(*gone))
        self._show("get", "vm,vmi")

    def _farewell(self, cluster: Cluster) -> None:
        node = self._kubectl.get("vmi", MACHINE)["status"]["nodeName"]
        agent = self._agent(node)["metadata"]["name"]
        self._terminal.show(
            f"\nCluster {NAME} and VM {MACHINE} go on running:\n\n"
            f"    export KUBECONFIG={cluster.kubeconfig}\n"
            f"    kubectl get vm,vmi,pods -o wide\n"
            f"    kubectl -n {NAMESPACE} port-forward pod/{agent} 8185   # http://127.0.0.1:8185/: its memory\n"
            f"    kubectl delete -f {MANIFEST}\n\n"
            f"They end with\n\n    make cluster-down CLUSTER={NAME}\n"
        )

    def _show(self, *arguments: str) -> None:
        self._terminal.command(shlex.join(["kubectl", *arguments]))
        where = [str(SOURCE / one) if one == MANIFEST else one for one in arguments]
        self._terminal.show(self._kubectl(*where, seconds=PATIENCE) or "(nothing)")

    def _state(self) -> str:
        vm = self._kubectl.get("vm", MACHINE).get("status", {})
        there = self._kubectl.get("vmi,pods", "-l", f"kubevirt.io/domain={MACHINE}")["items"]
        phases = {one["kind"]: one.get("status", {}).get("phase") or "new" for one in there}
        words = {"VM": vm.get("printableStatus") or "new", "VMI": phases.get("VirtualMachineInstance")}
        words["pod"] = phases.get("Pod")
        return ", ".join(f"{kind} {word}" for kind, word in words.items() if word)

    def _pod(self) -> str:
        pods = self._kubectl.get("pods", "-l", f"vm.kubevirt.io/name={MACHINE}")["items"]
        alive = [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        if len(alive) != 1:
            raise ClusterError(f"{MACHINE} has {len(alive)} pods instead of one")
        return str(alive[0])

    def _console(self) -> str:
        return self._kubectl("logs", self._pod(), "-c", "guest-console-log")

    def _agent(self, node: str) -> Any:
        label = "app.kubernetes.io/name=kvnode-agent"
        pods = self._kubectl.get("pods", "-n", NAMESPACE, "-l", label)["items"]
        return next(pod for pod in pods if pod["spec"]["nodeName"] == node)

    def _start_neighbour(self, node: str) -> None:
        container = {"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sleep", "86400"]}
        spec: dict[str, Any] = {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "neighbour"}, "spec": spec}
        self._kubectl("delete", "pod", "neighbour", "--ignore-not-found")
        self._kubectl("apply", "-f", "-", given=json.dumps(body))
        self._kubectl("wait", "pod/neighbour", "--for=condition=Ready", "--timeout=110s")

    @staticmethod
    def _await(what: str, condition: Callable[[], Found]) -> Found:
        deadline = time.monotonic() + PATIENCE
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise ClusterError(f"{what}: not within {PATIENCE:g} s")
            time.sleep(1)
        return found
