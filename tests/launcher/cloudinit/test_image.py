"""The ISO of a cloud-init volume, read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kvnode.launcher import cloudinit, iso, paths
from kvnode.launcher.errors import LauncherError
from tests.launcher.cloudinit.machines import UUID, vmi
from tests.launcher.isos import contents, label
from tests.reports import report


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where ISOs go."""
    monkeypatch.setattr(paths, "CLOUD_INIT", tmp_path / "isos")
    return tmp_path / "isos"


def test_no_cloud(directory: Path, tmp_path: Path) -> None:
    cloudinit.prepare(vmi({"userData": "#!/bin/sh\necho hello\n", "networkData": "version: 2\n"}))
    written = directory / "ns1/testvmi/noCloud.iso"
    assert label(written) == "cidata"
    assert contents(written, tmp_path) == {
        "user-data": b"#!/bin/sh\necho hello\n",
        "meta-data": f'{{"instance-id":"{UUID}","local-hostname":"testvmi"}}'.encode(),
        "network-config": b"version: 2\n",
    }
    assert [entry.name for entry in written.parent.iterdir()] == ["noCloud.iso"], "no secret stays beside it"
    assert written.stat().st_mode & 0o007 == 0


def test_a_config_drive_tells_the_devices(directory: Path, tmp_path: Path) -> None:
    machine = vmi({"userData": "u"}, kind="cloudInitConfigDrive")
    data = cloudinit.read(machine)
    assert data is not None
    cloudinit.generate(machine, data, [{"type": "nic", "bus": "pci", "address": "a", "tags": ["t"]}])
    written = directory / "ns1/testvmi/configdrive.iso"
    assert label(written) == "config-2"
    found = contents(written, tmp_path)
    assert set(found) == {"openstack/latest/user_data", "openstack/latest/meta_data.json"}
    assert (
        b'"devices":[{"type":"nic","bus":"pci","address":"a","tags":["t"]}]'
        in found["openstack/latest/meta_data.json"]
    )


@report("B30")
@pytest.mark.parametrize("size", [1, 2047, 100_000, 1_234_567])
def test_images_end_on_a_sector_of_4_kib(directory: Path, size: int) -> None:
    cloudinit.prepare(vmi({"userData": "x" * size}))
    assert (directory / "ns1/testvmi/noCloud.iso").stat().st_size % 4096 == 0


def test_a_second_image_takes_the_place_of_the_first(directory: Path, tmp_path: Path) -> None:
    for text in ("first", "second"):
        cloudinit.prepare(vmi({"userData": text}))
    assert contents(directory / "ns1/testvmi/noCloud.iso", tmp_path)["user-data"] == b"second"


def test_metadata_that_a_hook_dropped_becomes_the_least(directory: Path, tmp_path: Path) -> None:
    machine = vmi({"userData": "u"})
    data = cloudinit.read(machine)
    assert data is not None
    cloudinit.generate(machine, replace(data, metadata=None))
    found = contents(directory / "ns1/testvmi/noCloud.iso", tmp_path)
    assert found["meta-data"] == f'{{"instance-id":"{UUID}"}}'.encode()


def test_an_empty_image_for_a_migration(directory: Path) -> None:
    machine = vmi({"userData": "u"})
    data = cloudinit.read(machine)
    assert data is not None
    cloudinit.generate_empty(machine, data, 10_000)
    written = directory / "ns1/testvmi/noCloud.iso"
    assert written.read_bytes() == bytes(10_000)
    assert written.stat().st_blocks * 512 >= 10_000, "its space is taken"


def test_a_tool_that_fails_is_quoted_in_one_line_and_leaves_nothing(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin/xorrisofs"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\ntouch "$2"\necho first >&2\necho xorrisofs: no space >&2\nexit 3\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    with pytest.raises(LauncherError, match=r"^xorrisofs: no space$"):
        cloudinit.prepare(vmi({"userData": "u"}))
    assert list((directory / "ns1/testvmi").iterdir()) == []


def test_a_directory_that_cannot_be_made_is_named(directory: Path) -> None:
    directory.write_text("a file")
    with pytest.raises(LauncherError, match="the cloud-init disk cannot be written"):
        cloudinit.prepare(vmi({"userData": "u"}))
    with pytest.raises(LauncherError, match=r"noCloud.iso cannot be written"):
        iso.write_empty(directory / "ns1/noCloud.iso", 4096, "Reason")
