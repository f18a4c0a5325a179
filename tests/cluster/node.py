"""``python -m tests.cluster.node DIRECTORY NODE``: one node, as PID 1 of its namespaces.

It has /run, /var/lib and /var/log of its own, so that host paths, sockets and CNI's state of two nodes never meet.
containerd, kubelet and kube-proxy are started again when they end, as a service manager would.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.cluster.images import PAUSE, standard_images
from tests.cluster.inside import run
from tests.cluster.plan import POD_NETWORK, Plan, node_address, pod_network
from tests.cluster.processes import Processes
from tests.cluster.reaping import wait_reaping

PRIVATE = ("/run", "/var/lib", "/var/log")
CNI_PLUGINS = "/usr/lib/cni"
SOCKET = "/run/containerd/containerd.sock"


def main(directory: Path, node: str) -> int:
    """Set the node up and keep it running."""
    plan = Plan.load(directory)
    root = directory / node
    processes = Processes(root / "logs")
    run("hostname", node)
    for path in PRIVATE:
        own = root / path.strip("/").replace("/", "-")
        own.mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", str(own), path)
    for path in ("/run/netns", "/run/lock"):
        Path(path).mkdir()
    commands: dict[str, list[str | Path]] = {
        "containerd": [plan.programs["containerd"], "--config", _containerd(plan, root)],
        "kubelet": [
            *(plan.programs["kubelet"], "--config", _kubelet(plan, root, node)),
            *("--kubeconfig", directory / "pki" / f"{node}.kubeconfig"),
            *("--hostname-override", node, "--node-ip", node_address(node)),
        ],
        "kube-proxy": [plan.programs["kube-proxy"], "--config", _proxy(plan, root, node)],
    }
    # containerd finds its shim there, and runc.
    environment = {
        "PATH": f"{Path(plan.programs['containerd']).parent}:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    }
    processes.start("containerd", commands["containerd"], environment)
    _import_images(plan, processes)
    processes.start("kubelet", commands["kubelet"], environment)
    processes.start("kube-proxy", commands["kube-proxy"], environment)
    while True:
        ended = wait_reaping(processes)
        time.sleep(0.5)
        processes.start(ended, commands[ended], environment)


def _import_images(plan: Plan, processes: Processes) -> None:
    ctr = plan.programs["ctr"]
    for _ in range(200):
        if subprocess.run([ctr, "version"], capture_output=True, check=False).returncode == 0:
            break
        processes.check()
        time.sleep(0.1)
    for archive in standard_images():
        run(ctr, "-n", "k8s.io", "images", "import", str(archive))


def _containerd(plan: Plan, root: Path) -> Path:
    """containerd's own default settings with what must differ here."""
    done = subprocess.run(
        [plan.programs["containerd"], "config", "default"], capture_output=True, text=True, check=True
    )
    text = done.stdout
    network = root / "cni"
    network.mkdir(exist_ok=True)
    (network / "10-pods.conflist").write_text(json.dumps(_cni(root.name)))
    for pattern, value in {
        r"restrict_oom_score_adj = false": "restrict_oom_score_adj = true",  # no CAP_SYS_RESOURCE on build machines
        r"bin_dirs = .*": f"bin_dirs = ['{CNI_PLUGINS}']",
        r"conf_dir = '/etc.*": f"conf_dir = '{network}'",
        r"sandbox = .*": f"sandbox = '{PAUSE}'",
        r"path = '/opt/containerd'": "path = '/var/lib/containerd/opt'",
    }.items():
        text, found = re.subn(pattern, value, text)
        if not found:
            raise ClusterError(f"containerd's default settings have nothing like {pattern!r}")
    path = root / "containerd.toml"
    path.write_text(text)
    return path


def _cni(node: str) -> dict[str, object]:
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": pod_network(node)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni/networks",  # gone with the node
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": ipam}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}


def _kubelet(plan: Plan, root: Path, node: str) -> Path:
    pki = plan.root / "pki"
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{plan.cgroup(node)}",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki / f"{node}.crt"),
        "tlsPrivateKeyFile": str(pki / f"{node}.key"),
        "address": "0.0.0.0",  # noqa: S104 — the node's namespace
        "oomScoreAdj": 0,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "resolvConf": "",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "nodeStatusUpdateFrequency": "5s",
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "imageGCHighThresholdPercent": 100,  # images come from no registry: collected, they would be gone
    }
    path = root / "kubelet.json"
    path.write_text(json.dumps(settings, indent=1))
    return path


def _proxy(plan: Plan, root: Path, node: str) -> Path:
    settings = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(plan.root / "pki" / "kube-proxy.kubeconfig")},
        "hostnameOverride": node,
        "mode": "nftables",
        "clusterCIDR": POD_NETWORK,
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    path = root / "kube-proxy.json"
    path.write_text(json.dumps(settings, indent=1))
    return path


if __name__ == "__main__":
    if shutil.which("runc") is None:
        sys.exit("error: runc is missing")
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
