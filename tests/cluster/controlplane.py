"""etcd and the API server; for a whole cluster the controller manager and the scheduler too."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import kubeconfig
from tests.cluster.api import Api
from tests.cluster.errors import ClusterError
from tests.cluster.pki import Authority, Pair
from tests.cluster.plan import (
    CONTROL_ADDRESS,
    INSIDE_PORT,
    POD_NETWORK,
    SERVICE_ADDRESS,
    SERVICE_NETWORK,
    Plan,
    node_address,
)
from tests.cluster.processes import Processes

READY_SECONDS = 240.0
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")


@dataclass(frozen=True)
class Ports:
    """Where the control plane listens."""

    api: int
    etcd: int
    etcd_peer: int

    @classmethod
    def free(cls) -> Ports:
        """Three ports of loopback that nothing uses now, and that the kernel gives to no connection meanwhile."""
        low = 10_000
        high = max(low + 10_000, int(EPHEMERAL.read_text().split()[0]))
        found: set[int] = set()
        while len(found) < 3:
            port = low + secrets.randbelow(high - low)
            with socket.socket() as one, contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                found.add(port)
        return cls(*found)


@dataclass(frozen=True)
class Credentials:
    """The cluster's authority and what was issued before anything runs."""

    authority: Authority
    server: Pair
    admin: Pair
    kubelet_client: Pair
    front_proxy: Pair
    service_account_key: Path

    @classmethod
    def make(cls, plan: Plan) -> Credentials:
        """Issue all that the control plane itself needs."""
        authority = Authority(plan.root / "pki")
        addresses = ("127.0.0.1", CONTROL_ADDRESS, SERVICE_ADDRESS)
        alternative = (*(f"IP:{address}" for address in addresses), *(f"DNS:{name}" for name in _NAMES))
        return cls(
            authority,
            server=authority.issue("apiserver", "kube-apiserver", addresses=alternative),
            admin=authority.issue("admin", "admin", ("system:masters",)),
            kubelet_client=authority.issue("kubelet-client", "kube-apiserver", ("system:masters",)),
            front_proxy=authority.issue("front-proxy", "front-proxy"),
            service_account_key=authority.service_account_key(),
        )

    def kubelet(self, node: str) -> Pair:
        """A node's certificate, as client and as server."""
        names = (f"IP:{node_address(node)}", f"DNS:{node}")
        return self.authority.issue(node, f"system:node:{node}", ("system:nodes",), names)


def start(plan: Plan, credentials: Credentials, ports: Ports, processes: Processes) -> Api:
    """Start etcd and the API server and wait until it is ready.

    Raises:
        ClusterError: one of them ended, or the API server was not ready in time.
    """
    etcd = f"http://127.0.0.1:{ports.etcd}"
    peer = f"http://127.0.0.1:{ports.etcd_peer}"
    processes.start(
        "etcd",
        [
            *(
                plan.programs["etcd"],
                "--data-dir",
                plan.root / "etcd",
                "--unsafe-no-fsync",
                "--log-level",
                "error",
            ),
            *("--listen-client-urls", etcd, "--advertise-client-urls", etcd),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
        ],
    )
    processes.start("kube-apiserver", _api_server(plan, credentials, ports, etcd))
    address = CONTROL_ADDRESS if plan.nodes else "127.0.0.1"
    api = Api(f"https://{address}:{ports.api}", credentials.authority.ca.certificate, credentials.admin)
    wait_for(api.ready, processes, "the API server")
    return api


def _api_server(plan: Plan, credentials: Credentials, ports: Ports, etcd: str) -> list[str | Path]:
    ca = credentials.authority.ca.certificate
    key = credentials.service_account_key
    arguments: list[str | Path] = [
        plan.programs["kube-apiserver"],
        *(f"--etcd-servers={etcd}", f"--secure-port={ports.api}"),
        f"--bind-address={'0.0.0.0' if plan.nodes else '127.0.0.1'}",  # noqa: S104 — inside a namespace of its own
        f"--advertise-address={CONTROL_ADDRESS if plan.nodes else '127.0.0.1'}",
        f"--cert-dir={plan.root / 'pki' / 'generated'}",
        f"--tls-cert-file={credentials.server.certificate}",
        f"--tls-private-key-file={credentials.server.key}",
        f"--client-ca-file={ca}",
        f"--kubelet-client-certificate={credentials.kubelet_client.certificate}",
        f"--kubelet-client-key={credentials.kubelet_client.key}",
        f"--kubelet-certificate-authority={ca}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={ca}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={credentials.front_proxy.certificate}",
        f"--proxy-client-key-file={credentials.front_proxy.key}",
        "--enable-aggregator-routing=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        "--profiling=false",
    ]
    if not plan.nodes:
        arguments.append("--endpoint-reconciler-type=none")  # loopback is no address for a service
    if plan.audit:
        policy = plan.root / "audit-policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        arguments += [f"--audit-policy-file={policy}", f"--audit-log-path={plan.root / 'audit.log'}"]
    return arguments


def start_controllers(plan: Plan, credentials: Credentials, api: Api, processes: Processes) -> None:
    """Start the controller manager and the scheduler, each under the name that RBAC knows it by."""
    authority = credentials.authority
    for name, extra in {
        "kube-controller-manager": [
            f"--service-account-private-key-file={credentials.service_account_key}",
            f"--root-ca-file={authority.ca.certificate}",
            "--use-service-account-credentials=true",
            f"--cluster-cidr={POD_NETWORK}",
            "--node-monitor-grace-period=40s",
        ],
        "kube-scheduler": [],
    }.items():
        client = authority.issue(name, f"system:{name}")
        config = plan.root / "pki" / f"{name}.kubeconfig"
        kubeconfig.write(config, plan.name, api.server, authority.ca.certificate, client)
        flags = [f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0"]
        processes.start(name, [plan.programs[name], *flags, *extra])


def inside_ports() -> Ports:
    """The ports of a control plane in a network namespace of its own."""
    return Ports(INSIDE_PORT, 2379, 2380)


def wait_for(
    done: Callable[[], bool],
    processes: Processes,
    what: str,
    seconds: float = READY_SECONDS,
    every: float = 0.1,
) -> None:
    """Wait until ``done``, while the processes live.

    Raises:
        ClusterError: a process ended, or time is up.
    """
    deadline = time.monotonic() + seconds
    while not done():
        processes.check()
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not ready within {seconds:.0f} s; logs are in {processes.logs}")
        time.sleep(every)
