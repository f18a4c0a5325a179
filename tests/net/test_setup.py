"""Set-ups over a network in memory, and their files."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from kvnode.net import inroot
from kvnode.net.cache import Cache, PodInterface, Progress, RecordedProgresses
from kvnode.net.desired import Request, gateway
from kvnode.net.errors import CriticalNetError, NetError
from kvnode.net.podnetwork import PodNetworks, request_for
from kvnode.net.setup import setup
from kvnode.spec.config import ClusterConfig
from tests.net.recorder import Recorder

MASQUERADE = {"name": "default", "masquerade": {}}
DUAL = {"name": "eth0", "mac": "0a:58:00:00:00:01", "mtu": 1500}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    (tmp_path / "root").mkdir()
    return Cache(tmp_path / "private", "uid", tmp_path / "root", owner=(tmp_path.stat().st_uid))


def _kernel() -> Recorder:
    kernel = Recorder()
    kernel.add_pod_link({**DUAL, "addresses": ["10.244.0.5/24", "fd00::5/64"], "routes": None})
    return kernel


def _request(interface: Mapping[str, Any] = MASQUERADE, **more: Any) -> Request:
    more.setdefault("pod_ip", "10.0.0.1")
    return Request("uid", [{"name": "default", "pod": {}}], [interface], 42, **more)


def test_progress_outlives_the_agent(cache: Cache) -> None:
    setup(_request(), cache, RecordedProgresses(cache), _kernel())
    again = _kernel()
    setup(_request(), cache, RecordedProgresses(cache), again)
    assert again.ops == []
    assert cache.read("default") == PodInterface(MASQUERADE, ("10.244.0.5", "fd00::5"), Progress.FINISHED)


@pytest.mark.parametrize(
    ("failing", "left"),
    [
        ("tap-create", {"eth0"}),
        ("link-master", {"eth0"}),
        ("sysctl ipv6", {"eth0"}),
        ("nft", {"eth0"}),
    ],
)
def test_a_failure_is_undone_and_final(cache: Cache, failing: str, left: set[str]) -> None:
    kernel = _kernel()
    kernel.fails_at = failing
    with pytest.raises(CriticalNetError, match="refused"):
        setup(_request(), cache, RecordedProgresses(cache), kernel)
    assert {link.name for link in kernel.links.values()} == left
    assert RecordedProgresses(cache).get("default") is Progress.STARTED


class Disk:
    """Takes so many more writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 1000
        write = inroot.write

        def written(*arguments: Any, **more: Any) -> None:
            self.room -= 1
            if self.room < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write(*arguments, **more)

        monkeypatch.setattr(inroot, "write", written)


WRITES = 6
"""Of a set-up of two networks: their interfaces, that they are begun, and that they are finished."""


@pytest.mark.parametrize("room", range(WRITES))
@pytest.mark.parametrize("new_agent", [False, True])
def test_a_full_disk_is_waited_for(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, room: int, new_agent: bool
) -> None:
    """Whichever record there is no room for; nothing is set up twice."""
    kernel = _kernel()
    kernel.add_pod_link(
        {"name": "net1", "mac": "0a:58:00:00:00:02", "mtu": 1500, "addresses": [], "routes": []}
    )
    networks = [{"name": "default", "pod": {}}, {"name": "a", "multus": {"networkName": "a"}}]
    statuses = [{"name": "a", "podInterfaceName": "net1"}]
    request = Request(
        "uid",
        networks,
        [MASQUERADE, {"name": "a", "bridge": {}}],
        42,
        pod_ip="10.0.0.1",
        statuses=statuses,
    )
    disk, progresses = Disk(monkeypatch), RecordedProgresses(cache)
    disk.room = room
    for _ in range(2):
        with pytest.raises(NetError, match="No space left") as caught:
            setup(request, cache, progresses, kernel)
        assert not isinstance(caught.value, CriticalNetError)
        disk.room = 0
    disk.room = 1000
    is_set_up = bool(kernel.ops)
    if new_agent and not is_set_up:
        progresses = RecordedProgresses(cache)
    setup(request, cache, progresses, kernel)
    assert sum(op.startswith("tap-create") for op in kernel.ops) == len(networks)
    states = [found and found.progress for found in map(cache.read, ("default", "a"))]
    assert states == [Progress.FINISHED, Progress.FINISHED]


def test_which_address_comes_first_must_be_known(cache: Cache) -> None:
    with pytest.raises(NetError, match="MY_POD_IP"):
        setup(_request(pod_ip=""), cache, RecordedProgresses(cache), _kernel())


@pytest.mark.parametrize("name", ["../other", "", "..", "a/b", "a\0b"])
def test_names_that_lead_elsewhere(cache: Cache, name: str) -> None:
    with pytest.raises(NetError, match="cannot be a file's name"):
        cache.write(name, PodInterface())


@pytest.mark.parametrize("text", ["", "[]", '{"networkState": 9}', "{", '{"podIPs": 3}'])
def test_a_record_that_is_none(cache: Cache, text: str) -> None:
    cache.write("default", PodInterface())
    (cache.private / "network-info-cache/uid/default").write_text(text)
    with pytest.raises(NetError, match="is no record of a network"):
        cache.read("default")


def test_a_launchers_links_lead_nowhere(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    (root / "run").mkdir(parents=True)
    (root / "var").symlink_to(outside)
    (root / "tmp").symlink_to("../../../run")
    owner = tmp_path.stat().st_uid
    with pytest.raises(OSError, match="var"):
        inroot.write(root, PurePosixPath("var/file"), b"x", mode=0o600, owner=owner)
    inroot.write(root, PurePosixPath("tmp/deep/file"), b"x", mode=0o604, owner=owner)
    assert (root / "run/deep/file").read_bytes() == b"x"
    assert not list(outside.iterdir())
    inroot.remove(root, PurePosixPath("tmp/deep/file"))
    inroot.remove(root, PurePosixPath("tmp/deep/file"))
    assert not list((root / "run/deep").iterdir())


@pytest.mark.parametrize(
    ("cidr", "version", "expected"),
    [("10.0.2.0/24", 4, "10.0.2.1/24"), ("10.0.2.9/30", 4, "10.0.2.9/30"), ("fd00::/126", 6, "fd00::1/126")],
)
def test_gateways(cidr: str, version: int, expected: str) -> None:
    assert gateway(cidr, version) == expected


@pytest.mark.parametrize(
    ("cidr", "version"),
    [("10.0.2.0/31", 4), ("10.0.2.0", 4), ("fd00::/120", 4), ("10.0.2.0/24", 6), ("x", 4), ("fd00::/127", 6)],
)
def test_networks_without_room(cidr: str, version: int) -> None:
    with pytest.raises(NetError, match="pod network"):
        gateway(cidr, version)


def test_what_a_vmi_asks_for() -> None:
    networks = [{"name": "b", "multus": {"networkName": "n"}}, {"name": "a", "pod": {}}]
    devices = {
        "interfaces": [{"name": "a", "masquerade": {}}, {"name": "b", "bridge": {}}, {"name": "c"}],
        "networkInterfaceMultiqueue": True,
    }
    vmi: dict[str, Any] = {
        "metadata": {"uid": "u", "annotations": {"sidecar.istio.io/inject": "TRUE"}},
        "spec": {"domain": {"devices": devices, "cpu": {"cores": 4, "sockets": 100}}},
        "status": {"runtimeUser": 107, "migrationTransport": "Unix"},
    }
    request = request_for(vmi, networks, 42, ClusterConfig(), "")
    assert [one["name"] for one in request.interfaces] == ["b", "a"]
    assert (request.uid, request.owner, request.queues) == ("u", 107, 256)
    assert (request.istio, request.legacy_migration_ports, request.port_ranges) == (True, False, False)
    vmi["status"] = {}
    vmi["spec"]["domain"]["cpu"] = {}
    vmi["spec"]["domain"]["resources"] = {"requests": {"cpu": "2500m"}}
    request = request_for(vmi, networks, 42, ClusterConfig(), "")
    assert (request.owner, request.queues, request.legacy_migration_ports) == (0, 3, True)


def test_records_of_a_vmi_go_with_it(tmp_path: Path) -> None:
    owner = tmp_path.stat().st_uid
    networks = PodNetworks(tmp_path, owner)
    assert networks.pod_addresses("uid", "default") == ()
    Cache(tmp_path, "uid", tmp_path, owner).write("default", PodInterface(addresses=("10.0.0.1",)))
    assert networks.pod_addresses("uid", "default") == ("10.0.0.1",)
    written = json.loads((tmp_path / "network-info-cache/uid/default").read_text())
    assert written == {"podIP": "10.0.0.1", "podIPs": ["10.0.0.1"]}
    networks.teardown("uid")
    assert networks.pod_addresses("uid", "default") == ()
    networks.teardown("uid")
