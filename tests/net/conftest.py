"""A pod, a node beside it and a guest in it, each in a network namespace of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kvnode.net.cache import Cache, RecordedProgresses
from kvnode.net.desired import Request
from kvnode.net.podnetwork import ProcessNamespace
from kvnode.net.setup import setup
from tests.net.namespaces import Namespace

POD_MAC = "0a:58:0a:f4:00:05"
GUEST_MAC = "02:00:00:00:00:77"
DEFAULT = {"name": "default", "pod": {}}

_VOLATILE = ("stats", "stats64", "ifindex", "link_index", "operstate", "flags", "linkinfo", "group")


class Lab:
    """A pod whose ``eth0`` is joined to a node."""

    def __init__(self, stack: ExitStack, directory: Path, mtu: int = 1450) -> None:
        """Make the namespaces, and address both ends in both families."""
        self._stack = stack
        self.pod = stack.enter_context(Namespace())
        self.node = stack.enter_context(Namespace())
        self.guest = stack.enter_context(Namespace())
        self.mtu = mtu
        self.root = directory / "root"
        self.root.mkdir()
        self.cache = Cache(directory / "private", "uid-1", self.root)
        self.progresses = RecordedProgresses(self.cache)
        self.join("eth0", "10.244.0", "fd10:244::", POD_MAC)
        self.pod.run("ip", "route", "add", "default", "via", "10.244.0.1", "dev", "eth0")
        self.pod.run("ip", "-6", "route", "add", "default", "via", "fd10:244::1", "dev", "eth0")

    def join(self, name: str, ipv4: str, ipv6: str, mac: str) -> None:
        """Another interface of the pod's."""
        far = f"n-{name}"[:15]
        link = ("ip", "link", "add", name, "address", mac, "mtu", str(self.mtu), "type", "veth")
        self.pod.run(*link, "peer", "name", far, "mtu", str(self.mtu), "netns", str(self.node.pid))
        for where, device, host in ((self.pod, name, 5), (self.node, far, 1)):
            where.run("ip", "addr", "add", f"{ipv4}.{host}/24", "dev", device)
            where.run("ip", "addr", "add", f"{ipv6}{host}/64", "dev", device, "nodad")
            where.run("ip", "link", "set", device, "up")

    def request(self, *interfaces: Mapping[str, Any], **more: Any) -> Request:
        """A set-up of these interfaces; a network other than the default is a secondary one."""
        networks = [
            DEFAULT if one["name"] == "default" else {"name": one["name"], "multus": {"networkName": "nad"}}
            for one in interfaces
        ]
        more.setdefault("networks", networks)
        more.setdefault("pod_ip", "10.244.0.9")
        return Request(uid="uid-1", interfaces=interfaces, launcher_pid=self.pod.pid, **more)

    def set_up(self, *interfaces: Mapping[str, Any], **more: Any) -> None:
        """Set them up as the agent does."""
        namespace = ProcessNamespace(self.pod.pid)
        setup(self.request(*interfaces, **more), self.cache, self.progresses, namespace)

    def pod_addresses(self, _vmi: object, network: str) -> tuple[str, ...]:
        """What the agent remembers of the pod's addresses."""
        found = self.cache.read(network)
        return () if found is None else found.addresses

    def plug(self, tap: str = "tap0", *, mac: str = GUEST_MAC, multiqueue: bool = False) -> None:
        """Put the guest's card at the tap."""
        several = str(int(multiqueue))
        arguments = (str(self.guest.pid), tap, several, str(self.mtu), mac)
        command = [sys.executable, "-m", "tests.net.pump", *arguments]
        process = self.pod.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._stack.callback(process.communicate)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    def address(self, *addresses: str, via: tuple[str, ...] = ()) -> None:
        """Address the guest."""
        for address in addresses:
            self.guest.run(
                "ip", "addr", "add", address, "dev", "eth0", *(["nodad"] if ":" in address else [])
            )
        for gateway in via:
            family = "-6" if ":" in gateway else "-4"
            self.guest.run("ip", family, "route", "add", "default", "via", gateway)

    def picture(self) -> dict[str, Any]:
        """The pod's network as it can be compared."""
        listed = self.pod.run("ip", "-j", "-d", "addr")
        links = {link["ifname"]: _picture(link) for link in json.loads(listed)}
        files = ["ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv4/conf/all/arp_ignore"]
        return {
            "links": links,
            "routes": self._routes("-4"),
            "routes6": self._routes("-6"),
            "rules": self.pod.run("nft", "-s", "list", "ruleset"),
            "settings": [self.sysctl(name) for name in files],
        }

    def _routes(self, family: str) -> list[str]:
        lines = self.pod.run("ip", family, "route").splitlines()
        # Whether there is a carrier shows late; and link-local ones come and go with it.
        lines = [line.replace(" linkdown", "").strip() for line in lines]
        return sorted(line for line in lines if not line.startswith(("fe80::", "multicast", "ff00::")))

    def sysctl(self, name: str) -> str:
        """A setting of the pod's."""
        return self.pod.run("cat", f"/proc/sys/net/{name}").strip()

    def link(self, name: str) -> dict[str, Any]:
        """An interface of the pod's, as ``ip`` tells of it."""
        found: dict[str, Any] = json.loads(self.pod.run("ip", "-j", "-d", "link", "show", name))[0]
        return found

    def pings(self, where: Namespace, address: str, size: int = 56) -> None:
        """Wait until an address answers to so many bytes."""
        eventually(lambda: where.run(sys.executable, "-m", "tests.net.ping", address, str(size)))


def _picture(link: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in link.items() if name not in _VOLATILE}
    kept["kind"] = (link.get("linkinfo") or {}).get("info_kind", "")
    kept["up"] = "UP" in link["flags"]
    # Link-local ones come and go with the carrier.
    kept["addr_info"] = sorted(
        f"{one['local']}/{one['prefixlen']}" for one in link["addr_info"] if one["scope"] != "link"
    )
    return kept


def eventually(attempt: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Do something until its assertions hold."""
    end = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except AssertionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    """Makes labs, and takes them away."""
    with ExitStack() as stack:

        def make(**more: Any) -> Lab:
            directory = tmp_path / f"lab{len(list(tmp_path.iterdir()))}"
            directory.mkdir()
            return Lab(stack, directory, **more)

        yield make


@pytest.fixture
def lab(labs: Callable[..., Lab]) -> Lab:
    """A lab of the usual kind."""
    return labs()
