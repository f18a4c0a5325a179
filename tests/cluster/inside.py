"""``python -m tests.cluster.inside DIRECTORY FD``: a whole cluster, as PID 1 of its own namespaces.

The network: a bridge here, which carries the control plane's address; a namespace for every node, joined to it.
FD is a socket that listens in the machine's network; what connects there is passed on to the API server.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cluster import controlplane, kubeconfig
from tests.cluster.api import Api
from tests.cluster.controlplane import Credentials
from tests.cluster.errors import ClusterError
from tests.cluster.pki import Authority, Pair
from tests.cluster.plan import CONTROL_ADDRESS, INSIDE_PORT, SERVICE_NETWORK, Plan, node_address, pod_network
from tests.cluster.processes import Processes
from tests.cluster.reaping import wait_reaping

BRIDGE = "kvbr0"


def main(directory: Path, listener: int) -> int:
    """Start everything, then wait for ever: the keeper's end is ours."""
    plan = Plan.load(directory)
    processes = Processes(directory / "logs")
    try:
        _network(plan)
        relay = [
            sys.executable,
            "-m",
            "tests.cluster.relay",
            str(listener),
            CONTROL_ADDRESS,
            str(INSIDE_PORT),
        ]
        processes.start("relay", relay, fds=(listener,))
        os.close(listener)
        credentials = _credentials(plan)
        # The nodes' containerd comes up while the control plane does.
        for node in plan.node_names:
            _start_node(plan, credentials, node, processes)
        api = controlplane.start(plan, credentials, controlplane.inside_ports(), processes)
        controlplane.start_controllers(plan, credentials, api, processes)
        _allow_proxy(api)
        controlplane.wait_for(lambda: _nodes_ready(api, plan), processes, "the nodes", every=0.2)
        (directory / "inside-ready").touch()
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    while (ended := wait_reaping(processes)) in plan.node_names:
        del processes.running[ended]  # a crashed node is no end of the cluster
    return 1


def _credentials(plan: Plan) -> Credentials:
    """What the keeper made."""
    pki = plan.root / "pki"

    def pair(name: str) -> Pair:
        return Pair(pki / f"{name}.crt", pki / f"{name}.key")

    authority = Authority.__new__(Authority)
    authority.directory, authority.ca = pki, pair("ca")
    return Credentials(
        authority,
        server=pair("apiserver"),
        admin=pair("admin"),
        kubelet_client=pair("kubelet-client"),
        front_proxy=pair("front-proxy"),
        service_account_key=pki / "service-account.key",
    )


def run(*argv: str) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`{' '.join(argv)}`: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")


def _network(plan: Plan) -> None:
    names = Path("/run/netns")
    names.mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "netns", str(names))  # names that no other cluster sees
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "addr", "add", f"{CONTROL_ADDRESS}/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    run("ip", "route", "add", SERVICE_NETWORK, "dev", BRIDGE)
    for node in plan.node_names:
        run("ip", "netns", "add", node)
        run("ip", "link", "add", node, "type", "veth", "peer", "name", "eth0", "netns", node)
        run("ip", "link", "set", node, "master", BRIDGE, "up")
        run("ip", "-n", node, "addr", "add", f"{node_address(node)}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            run("ip", "-n", node, "link", "set", link, "up")
        run("ip", "-n", node, "route", "add", "default", "via", CONTROL_ADDRESS)
        run("ip", "netns", "exec", node, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        run("ip", "route", "add", pod_network(node), "via", node_address(node))
    for node in plan.node_names:
        for other in set(plan.node_names) - {node}:
            run("ip", "-n", node, "route", "add", pod_network(other), "via", node_address(other))


def _start_node(plan: Plan, credentials: Credentials, node: str, processes: Processes) -> None:
    pki = plan.root / "pki"
    client = Pair(pki / f"{node}.crt", pki / f"{node}.key")
    server = f"https://{CONTROL_ADDRESS}:{INSIDE_PORT}"
    ca = credentials.authority.ca.certificate
    kubeconfig.write(pki / f"{node}.kubeconfig", plan.name, server, ca, client)
    proxy = pki / "kube-proxy.kubeconfig"
    if not proxy.exists():
        kubeconfig.write(
            proxy, plan.name, server, ca, credentials.authority.issue("kube-proxy", "system:kube-proxy")
        )
    # `ip netns exec` would mount a new /sys, in which kubelet finds no cgroups.
    processes.start(
        node,
        [
            *("nsenter", f"--net=/run/netns/{node}"),
            *("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"),
            *("--propagation", "private"),
            *(sys.executable, "-m", "tests.cluster.node", plan.root, node),
        ],
    )


def _allow_proxy(api: Api) -> None:
    """What kube-proxy reads beyond the API server's built-in role: the node object on newer releases."""
    name = "kvnode-test-kube-proxy"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:node-proxier",
        },
        "subjects": [{"kind": "User", "name": "system:kube-proxy", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    api.apply(role, f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}")


def _nodes_ready(api: Api, plan: Plan) -> bool:
    try:
        nodes = api.request("GET", "/api/v1/nodes")["items"]
    except (OSError, ClusterError):
        return False
    ready = {
        node["metadata"]["name"]
        for node in nodes
        for condition in node.get("status", {}).get("conditions", [])
        if (condition["type"], condition["status"]) == ("Ready", "True")
    }
    return ready >= set(plan.node_names)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
