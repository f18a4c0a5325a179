"""``net``: the agent's set-up of a pod's network, over one that is in memory."""

from __future__ import annotations

import tempfile
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path
from typing import Any

from kvnode.net import istio, names
from kvnode.net.cache import Cache, Progress
from kvnode.net.desired import Request, compose
from kvnode.net.dhcp import config
from kvnode.net.dhcp.config import DhcpConfig
from kvnode.net.errors import NetError
from kvnode.net.setup import setup
from kvnode.net.state import Status, Wanted, WantedLink, first_global
from tests.net.recorder import Recorder
from tests.reference.common import Outcome

PID = 4242
UID = "uid-1"
PRIVATE = "/var/run/kubevirt-private"


class Progresses(dict[str, Progress]):
    """Progress apart from the files, as the cases keep it."""

    def get(self, network: str) -> Progress:  # type: ignore[override]
        return super().get(network, Progress.PENDING)

    def put(self, network: str, progress: Progress) -> None:
        self[network] = progress

    def drop(self, network: str) -> None:
        self.pop(network, None)

    def numbers(self) -> dict[str, int]:
        """Those that are not pending."""
        return {name: int(progress) for name, progress in self.items() if progress}


class Pod:
    """A pod and the agent's files of it."""

    def __init__(self, directory: Path) -> None:
        self.kernel = Recorder()
        self.directory = directory
        self.progresses = Progresses()
        self.cache = Cache(directory / "node" / PRIVATE[1:], UID, directory / "launcher")
        self.cache.private.mkdir(parents=True)
        self.cache.launcher_root.mkdir(parents=True)

    def set_up(self, row: dict[str, Any], request: Request) -> bool:
        """Whether it failed."""
        for link in row.get("pod_links") or row.get("new_pod_links") or ():
            self.kernel.add_pod_link(link)
        self.kernel.ops, self.kernel.rules = [], []
        try:
            setup(request, self.cache, self.progresses, self.kernel)
        except NetError:
            return True
        return False

    def files(self) -> dict[str, str]:
        """The files, by the path that they would have."""
        found = {}
        for root, prefix in (("node", ""), ("launcher", f"/proc/{PID}/root")):
            folder = self.directory / root
            for path in folder.rglob("*"):
                if path.is_file():
                    found[f"{prefix}/{path.relative_to(folder)}"] = path.read_text()
        return dict(sorted(found.items()))


def run(row: dict[str, Any]) -> Outcome | None:
    """Run one row; None when it is of another kind."""
    kind = row["kind"]
    if kind == "setup":
        with tempfile.TemporaryDirectory() as directory:
            return _setup(row, Pod(Path(directory)))
    if kind == "setup-sequence":
        with tempfile.TemporaryDirectory() as directory:
            pod = Pod(Path(directory))
            steps = [_step(step, pod) for step in row["steps"]]
        return Outcome.of([want for want, _ in steps], [got for _, got in steps])
    return {"names": _names, "name-scheme": _scheme, "istio": _istio}.get(kind, lambda _: None)(row)


def _request(row: dict[str, Any]) -> Request:
    return Request(
        uid=UID,
        networks=row["networks"],
        interfaces=row["interfaces"],
        launcher_pid=row.get("launcher_pid", PID),
        owner=row.get("owner_id", 107),
        queues=row.get("queues_capacity", 0),
        statuses=row.get("vmi_status_interfaces") or (),
        plugins=row.get("binding_plugins") or {},
        pod_ip=row.get("pod_ip_env", "10.244.0.5"),
        istio=row.get("istio", False),
        legacy_migration_ports=row.get("legacy_migration_ports", False),
        port_ranges=row.get("port_ranges_gate", False),
    )


def _setup(row: dict[str, Any], pod: Pod) -> Outcome:
    keys = ("status_read", "desired_spec", "link_ops", "nft", "pod_cache", "cache_files", "state_after")
    want = {key: row[key] for key in (*keys, "returns_error")}
    want["dhcp_config"] = row.get("dhcp_config")
    request = _request(row)
    for name, number in (row["state_before"] or {}).items():
        pod.progresses.put(name, Progress(number))
    failed = pod.set_up(row, request)
    status = pod.kernel.read_first
    names_ = [network["name"] for network in row["networks"]]
    cached = {name: found for name in names_ if (found := pod.cache.read(name)) and found.addresses}
    got = {
        "status_read": status and _status(status),
        "desired_spec": None if failed or status is None else _wanted(compose(request, status)),
        "link_ops": pod.kernel.ops or None,
        "nft": pod.kernel.rules or None,
        "pod_cache": {
            name: {"podIP": found.addresses[0], "podIPs": list(found.addresses)}
            for name, found in cached.items()
        },
        "cache_files": pod.files(),
        "state_after": pod.progresses.numbers(),
        "returns_error": failed,
        "dhcp_config": None if failed else _dhcp(row, pod),
    }
    return Outcome.of(want, got)


def _step(step: dict[str, Any], pod: Pod) -> tuple[dict[str, Any], dict[str, Any]]:
    keys = ("cache_files_after", "link_ops", "links_after", "nft", "returns_error", "state_after")
    failed = pod.set_up(step, _request(step))
    got = {
        "cache_files_after": list(pod.files()),
        "link_ops": pod.kernel.ops or None,
        "links_after": [link.name for link in pod.kernel.links.values()],
        "nft": pod.kernel.rules or None,
        "returns_error": failed,
        "state_after": pod.progresses.numbers(),
    }
    return {key: step[key] for key in keys}, got


def _names(row: dict[str, Any]) -> Outcome:
    network = {"name": row["network"], **({"multus": {}} if row["secondary"] else {"pod": {}})}
    # The pod's own interface has the name that the VMI's status tells of.
    statuses = [{"name": row["network"], "podInterfaceName": row["pod_interface"]}]
    ordinal = names.has_ordinals([row["pod_interface"]])
    found = names.scheme([network], statuses, ordinal=ordinal)[row["network"]]
    got = {
        "pod_interface": found,
        "bridge": names.bridge(found),
        "renamed_pod_nic": names.nic(found),
        "tap": names.tap(found, network),
    }
    return Outcome.of({key: row[key] for key in got}, got)


def _scheme(row: dict[str, Any]) -> Outcome:
    got = {
        kind: names.scheme(row["networks"], (), ordinal=kind == "ordinal") for kind in ("hashed", "ordinal")
    }
    return Outcome.of({kind: row[kind] for kind in got}, got)


def _istio(row: dict[str, Any]) -> Outcome:
    got = {
        "loopback": istio.LOOPBACK,
        "non_proxied_ports": list(istio.NON_PROXIED_PORTS),
        "reserved_ports": list(istio.RESERVED_PORTS),
    }
    return Outcome.of({key: row[key] for key in got}, got)


def _dhcp(row: dict[str, Any], pod: Pod) -> dict[str, Any]:
    """What the launcher makes of it."""
    assert pod.kernel.read_first is not None
    before = pod.kernel.read_first
    pod_links = _request(row).pod_links(before)
    found: dict[str, Any] = {}
    for position, interface in enumerate(row["interfaces"]):
        name = interface["name"]
        link = before.link(pod_links.get(name, ""))
        if interface.get("state") == "absent" or link is None:
            continue
        more = {"name": link.name, "mtu": link.mtu, "subdomain": row["subdomain"]}
        if "bridge" in interface:
            file = config.bridge_cache(pod.cache.launcher_root / PRIVATE[1:], link.name)
            found[name] = _config(config.bridge(file.read_bytes(), position=position, **more))
        elif "masquerade" in interface:
            network = next(one for one in row["networks"] if one["name"] == name)
            reached = {"ipv4": bool(first_global(link.ipv4)), "ipv6": bool(first_global(link.ipv6))}
            found[name] = _config(config.masquerade(network, **more, **reached))
    return found


def _config(found: DhcpConfig) -> dict[str, Any]:
    routes = None
    if found.routes is not None:
        routes = [{"dst": _text(route.destination), "gw": _text(route.gateway)} for route in found.routes]
    return {
        "advertising_ip": _text(found.server_ip),
        "advertising_ipv6": _text(found.server_ipv6),
        "gateway": _text(found.gateway),
        "ip": _text(found.ip),
        "ipam_disabled": found.ipam_disabled,
        "ipv6": _text(found.ipv6),
        "mac": found.mac.hex(":"),
        "mtu": found.mtu,
        "name": found.name,
        "routes": routes,
        "subdomain": found.subdomain,
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _ip(addresses: tuple[IPv4Interface, ...] | tuple[IPv6Interface, ...] | None) -> dict[str, Any]:
    if addresses is None:
        return {}
    if not addresses:
        return {"enabled": False}
    listed = [{"IP": str(one.ip), "prefix-length": one.network.prefixlen} for one in addresses]
    return {"enabled": True, "address": listed}


def _filled(**fields: Any) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in fields.items() if value not in (None, "", 0)}


def _status(status: Status) -> dict[str, Any]:
    links = [
        {
            **_filled(name=link.name, index=link.index, type=link.kind, state=link.state),
            **_filled(mac_address=link.mac, mtu=link.mtu, controller=link.controller),
            "IPv4": _ip(link.ipv4),
            "IPv6": _ip(link.ipv6),
            "linux-stack": {"ip4-route-local-net": link.route_localnet, "port-learning": link.learning},
            "Metadata": None,
        }
        for link in status.links
    ]
    routes = [
        _filled(
            destination=str(route.destination),
            next_hop_interface=route.link,
            next_hop_address=_text(route.gateway),
            table_id=route.table,
        )
        for route in status.routes
    ]
    stack = status.stack
    return {
        "interfaces": links or None,
        "routes": {"running": routes} if routes else {},
        "linux-stack": {
            "ipv4": {
                "arp-ignore": stack.arp_ignore,
                "forwarding": stack.forwarding4,
                "ping-group-range": list(stack.ping_group_range),
                "unprivileged-port-start": stack.unprivileged_port_start,
            },
            "ipv6": {"forwarding": stack.forwarding6},
        },
    }


def _wanted(wanted: Wanted) -> dict[str, Any]:
    stack, ipv4 = wanted.stack, {}
    if stack.arp_ignore is not None:
        ipv4["arp-ignore"] = stack.arp_ignore
    if stack.forwarding4:
        ipv4["forwarding"] = True
    if stack.ping_group_range is not None:
        ipv4["ping-group-range"] = list(stack.ping_group_range)
    if stack.unprivileged_port_start is not None:
        ipv4["unprivileged-port-start"] = stack.unprivileged_port_start
    ipv6 = {"forwarding": True} if stack.forwarding6 else {}
    links = [_wanted_link(link) for link in wanted.links]
    return {**({"interfaces": links} if links else {}), "linux-stack": {"ipv4": ipv4, "ipv6": ipv6}}


def _wanted_link(link: WantedLink) -> dict[str, Any]:
    stack: dict[str, bool] = {}
    if link.route_localnet:
        stack["ip4-route-local-net"] = True
    if link.learning_off:
        stack["port-learning"] = False
    tap = link.tap and _filled(queues=link.tap.queues, UID=link.tap.owner, GID=link.tap.owner)
    return {
        **_filled(name=link.name, index=link.index, type=link.kind, state=link.state),
        **_filled(mac_address=link.mac, copy_mac_from=link.copy_mac_from, mtu=link.mtu),
        **_filled(controller=link.controller),
        **({"tap": tap} if tap is not None else {}),
        "IPv4": _ip(link.ipv4),
        "IPv6": _ip(link.ipv6),
        "linux-stack": stack,
        "Metadata": {"Pid": link.pid, "NetworkName": link.network},
    }
