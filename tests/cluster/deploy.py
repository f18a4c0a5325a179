"""The project's images and deploy/ on a whole cluster, by kubectl as a user would."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.cluster.binaries import Say, kubectl
from tests.cluster.cluster import SOURCE, Cluster
from tests.cluster.errors import ClusterError
from tools.images.build import Image, build
from tools.images.errors import ImageError

DEPLOY = SOURCE / "deploy"
EMULATION = SOURCE / "examples" / "kubevirt-emulation.yaml"
NAMESPACE = "kvnode"
AGENT = "daemonset/kvnode-agent"
CONTROLLER = "deployment/kvnode-controller"
WEBHOOK = "deployment/kvnode-webhook"
#: What a ready agent's node has a moment later: without it a VM is unschedulable at first.
_TAKES_VMS = {
    r".metadata.labels.kubevirt\.io/schedulable": "true",
    r".status.allocatable.devices\.kubevirt\.io/tun": "1k",
}
CALL_SECONDS, ROLLOUT_SECONDS = 240, 600


class Kubectl:
    """kubectl with a cluster's kubeconfig."""

    def __init__(self, cluster: Cluster, say: Say) -> None:
        """Raises ClusterError where kubectl is not to be had."""
        program = kubectl(say)
        if program is None:
            raise ClusterError("there is no kubectl, and none could be had")
        # What another cluster had behind the same port must not be remembered.
        cache = cluster.plan.root / "kubectl-cache"
        self.command = [str(program), f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={cache}"]

    def __call__(
        self, *arguments: str | Path, given: str | None = None, seconds: float = CALL_SECONDS
    ) -> str:
        """Run it; the answer is what it wrote.

        Args:
            given: its standard input.
            seconds: that it may take.

        Raises:
            ClusterError: it failed; the message is its own.
        """
        command = [*self.command, *map(str, arguments)]
        try:
            done = subprocess.run(
                command, input=given, capture_output=True, text=True, check=False, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            raise ClusterError(f"kubectl {' '.join(command[2:])}: no end within {seconds:g} s") from None
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(command[2:])}: {done.stderr.strip()[-600:]}")
        return done.stdout

    def get(self, *arguments: str) -> Any:
        """``kubectl get ARGUMENT... -o json``, read."""
        return json.loads(self("get", *arguments, "-o", "json"))

    def roll_out(self, kind_and_name: str, seconds: float = ROLLOUT_SECONDS) -> None:
        """Wait until a DaemonSet or Deployment of the project is as it is to be.

        Raises:
            ClusterError: it does not become so; the message has what its pods are and wrote.
        """
        limit = f"--timeout={seconds:g}s"
        try:
            self("rollout", "status", "-n", NAMESPACE, kind_and_name, limit, seconds=seconds + 10)
        except ClusterError as error:
            pods = self("get", "pods", "-n", NAMESPACE)
            logs = self("logs", "-n", NAMESPACE, kind_and_name, "--all-containers", "--tail=15")
            raise ClusterError(f"{error}\n{pods}{logs}") from None


def load_images(cluster: Cluster, say: Say, names: Sequence[str] = ()) -> list[Image]:
    """Build the project's images, or find them, and import them into all nodes.

    Raises:
        ClusterError: one cannot be built or imported.
    """
    try:
        images = build(names, say)
    except ImageError as error:
        raise ClusterError(str(error)) from None
    say(f"importing {', '.join(image.name for image in images)} into {cluster.plan.nodes} nodes")
    cluster.load_images([Path(image.archive) for image in images])
    return images


def deploy_agent(cluster: Cluster, say: Say) -> None:
    """Apply the namespace and the agent, and wait until there is one ready on every node.

    Raises:
        ClusterError: something was refused, or an agent does not get ready.
    """
    call = Kubectl(cluster, say)
    call("apply", "-f", DEPLOY / "namespace.yaml")
    there = call("get", "-n", NAMESPACE, AGENT, "--ignore-not-found", "-o", "name")
    call("apply", "-f", DEPLOY / "agent")
    if there:  # the images' names stay the same when what is in them changes
        call("rollout", "restart", "-n", NAMESPACE, AGENT)
    say("waiting for the agents")
    call.roll_out(AGENT)


def deploy_all(cluster: Cluster, say: Say, *, emulate: bool = True) -> None:
    """Apply all of deploy/ and wait until webhooks, controllers and agents are ready.

    Args:
        emulate: write into the cluster's settings that guests are emulated.

    Raises:
        ClusterError: something was refused, or does not get ready.
    """
    call = Kubectl(cluster, say)
    deployed = (WEBHOOK, CONTROLLER, AGENT)
    there = call("get", "-n", NAMESPACE, *deployed, "--ignore-not-found", "-o", "name").split()
    call("apply", "-k", DEPLOY)
    if emulate:
        call("apply", "-f", EMULATION)
    if there:  # the images' names stay the same when what is in them changes
        call("rollout", "restart", "-n", NAMESPACE, *deployed)
    for one in deployed:
        say(f"waiting for the {one.rpartition('-')[2]}s")
        call.roll_out(one)
    say("waiting for nodes that take VMs")
    for path, value in _TAKES_VMS.items():
        wanted = f"--for=jsonpath={{{path}}}={value}"
        call("wait", "node", "--all", wanted, f"--timeout={CALL_SECONDS - 5}s")
