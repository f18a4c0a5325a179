"""ISOs of the files that Kubernetes puts into the pod, read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvnode.launcher import config_disks, paths
from kvnode.launcher.errors import LauncherError
from tests.launcher.isos import contents, label
from tests.reports import report

KINDS = {
    "configMap": ("CONFIG_MAPS", "CONFIG_MAP_DISKS"),
    "secret": ("SECRETS", "SECRET_DISKS"),
    "sysprep": ("SYSPREPS", "SYSPREP_DISKS"),
    "downwardAPI": ("DOWNWARD_APIS", "DOWNWARD_API_DISKS"),
}


@pytest.fixture(autouse=True)
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pod's directories, under one of the test."""
    for pair in KINDS.values():
        for name in pair:
            monkeypatch.setattr(paths, name, tmp_path / name.lower())
    monkeypatch.setattr(paths, "SERVICE_ACCOUNT", tmp_path / "account")
    monkeypatch.setattr(paths, "SERVICE_ACCOUNT_DISK", tmp_path / "account-disk")
    return tmp_path


def mounted(directory: Path, **files: str) -> None:
    """Files as kubelet mounts them: links to a directory that it exchanges whole."""
    data = directory / "..2024_01_02"
    data.mkdir(parents=True)
    (directory / "..data").symlink_to(data.name)
    for name, content in files.items():
        (data / name).write_text(content)
        (directory / name).symlink_to(f"..data/{name}")


def vmi(kind: str, source: dict[str, Any], disks: tuple[str, ...] = ("v",), **status: Any) -> dict[str, Any]:
    """A VMI with a volume ``v`` of that kind."""
    return {
        "metadata": {"name": "m", "namespace": "n"},
        "spec": {
            "domain": {"devices": {"disks": [{"name": name} for name in disks]}},
            "volumes": [{"name": "v", kind: source}],
        },
        "status": status,
    }


@report("B30")
@pytest.mark.parametrize("kind", ["configMap", "secret", "downwardAPI"])
def test_a_disk_holds_the_files_and_not_links(kind: str, pod: Path) -> None:
    sources, disks = (getattr(paths, name) for name in KINDS[kind])
    mounted(sources / "v", one="1", two="22")
    config_disks.prepare(vmi(kind, {}))
    written = disks / "v.iso"
    assert label(written) == "cfgdata"
    found = contents(written, pod)
    assert (found["one"], found["two"]) == (b"1", b"22")
    assert written.stat().st_size % 4096 == 0
    assert [entry.name for entry in disks.iterdir()] == ["v.iso"]


def test_a_label_of_the_users(pod: Path) -> None:
    mounted(paths.SECRETS / "v", one="1")
    config_disks.prepare(vmi("secret", {"volumeLabel": "MINE"}))
    assert label(paths.SECRET_DISKS / "v.iso") == "MINE"


@pytest.mark.parametrize("hostile", ["a\0b", "\ud800", "x" * 100])
def test_a_label_that_no_image_can_have_is_an_error(hostile: str) -> None:
    mounted(paths.SECRETS / "v", one="1")
    with pytest.raises(LauncherError, match="xorrisofs: "):
        config_disks.prepare(vmi("secret", {"volumeLabel": hostile}))
    assert list(paths.SECRET_DISKS.iterdir()) == []


@report("B30")
def test_a_service_account_has_one_disk(pod: Path) -> None:
    mounted(paths.SERVICE_ACCOUNT, namespace="t")
    config_disks.prepare(vmi("serviceAccount", {"serviceAccountName": "default", "volumeLabel": "no"}))
    written = paths.SERVICE_ACCOUNT_DISK / "service-account.iso"
    assert label(written) == "cfgdata"
    assert contents(written, pod)["namespace"] == b"t"
    assert written.stat().st_size % 4096 == 0


@report("B30")
@pytest.mark.parametrize("name", ["unattend.xml", "Autounattend.XML"])
def test_a_sysprep_disk_is_made_whether_or_not_a_disk_names_it(name: str) -> None:
    mounted(paths.SYSPREPS / "v", **{name: "<x/>"})
    config_disks.prepare(vmi("sysprep", {"configMap": {"name": "c"}}, disks=()))
    written = paths.SYSPREP_DISKS / "v.iso"
    assert label(written) == "unattendCD"
    assert written.stat().st_size % 4096 == 0


def test_a_sysprep_disk_needs_an_answer_file() -> None:
    mounted(paths.SYSPREPS / "v", other="x")
    with pytest.raises(LauncherError, match=r"volume v: sysprep needs a file autounattend\.xml"):
        config_disks.prepare(vmi("sysprep", {"secret": {"name": "c"}}))


def test_a_volume_without_a_disk_gets_none() -> None:
    config_disks.prepare(vmi("configMap", {}, disks=("other",)))
    assert not paths.CONFIG_MAP_DISKS.exists()


def test_files_that_are_not_there_are_named() -> None:
    with pytest.raises(LauncherError, match="volume v: its files cannot be read: No such file"):
        config_disks.prepare(vmi("configMap", {}))


def test_a_migrations_target_has_empty_images_of_the_sources_size() -> None:
    mounted(paths.CONFIG_MAPS / "v", one="1")
    status = {"volumeStatus": [{"name": "other", "size": 1}, {"name": "v", "size": 8192}]}
    config_disks.prepare(vmi("configMap", {}, **status), empty=True)
    assert (paths.CONFIG_MAP_DISKS / "v.iso").read_bytes() == bytes(8192)


def test_a_migrations_target_must_know_the_size() -> None:
    mounted(paths.CONFIG_MAPS / "v", one="1")
    with pytest.raises(LauncherError, match=r"volume v: status.volumeStatus does not tell its size"):
        config_disks.prepare(vmi("configMap", {}), empty=True)
