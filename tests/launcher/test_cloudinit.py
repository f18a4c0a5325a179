"""The NoCloud data source: what is on the ISO, and that a reader of ISOs finds it."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kvnode.launcher import cloudinit, paths
from kvnode.launcher.errors import LauncherError

UUID = "5d307ca9-b3ef-428c-8861-06e72d69f223"


def vmi(source: dict[str, Any], name: str = "testvmi", **spec: Any) -> dict[str, Any]:
    """A VMI with one cloudInitNoCloud volume."""
    return {
        "metadata": {"name": name, "namespace": "ns1"},
        "spec": {
            "domain": {"firmware": {"uuid": UUID}},
            "volumes": [{"name": "ci", "cloudInitNoCloud": source}],
            **spec,
        },
    }


def files(machine: dict[str, Any]) -> dict[str, bytes]:
    """The files that the ISO of ``machine`` holds."""
    source = machine["spec"]["volumes"][0]["cloudInitNoCloud"]
    return cloudinit.no_cloud_data(machine, source, "ci").files()


def encoded(text: str) -> str:
    """Base64 of ``text``."""
    return base64.b64encode(text.encode()).decode()


def test_user_data_and_metadata() -> None:
    assert files(vmi({"userData": "#cloud-config\n"})) == {
        "user-data": b"#cloud-config\n",
        "meta-data": f'{{"instance-id":"{UUID}","local-hostname":"testvmi"}}'.encode(),
    }


def test_base64_is_decoded_and_plain_text_wins() -> None:
    both = {"userData": "plain", "userDataBase64": encoded("encoded"), "networkDataBase64": encoded("version: 2\n")}
    found = files(vmi(both))
    assert found["user-data"] == b"plain"
    assert found["network-config"] == b"version: 2\n"
    assert files(vmi({"userDataBase64": encoded("only")}))["user-data"] == b"only"


def test_network_data_alone_will_do() -> None:
    assert files(vmi({"networkData": "version: 2"}))["user-data"] == b""


def test_the_hostname_is_the_specs_or_the_first_label_of_the_name() -> None:
    def hostname(machine: dict[str, Any]) -> str:
        return str(json.loads(files(machine)["meta-data"])["local-hostname"])

    assert hostname(vmi({"userData": "x"}, name="web.example")) == "web"
    assert hostname(vmi({"userData": "x"}, name="n" * 70)) == "n" * 63
    assert hostname(vmi({"userData": "x"}, hostname="mine")) == "mine"


def test_the_instance_type_comes_first_and_is_escaped() -> None:
    machine = vmi({"userData": "x"})
    machine["metadata"]["annotations"] = {"kubevirt.io/instancetype-name": "a<b>&"}
    meta = files(machine)["meta-data"]
    assert meta.startswith(b'{"instance-type":"a\\u003cb\\u003e\\u0026","instance-id"')
    machine["metadata"]["annotations"]["kubevirt.io/cluster-instancetype-name"] = "wide"
    assert b'"instance-type":"wide"' in files(machine)["meta-data"]


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ({}, "volume ci: cloudInitNoCloud needs userData or networkData"),
        ({"userDataBase64": "not base64!"}, "volume ci: cloudInitNoCloud.userDataBase64 is not base64"),
    ],
)
def test_what_cannot_be_read_is_named(source: dict[str, Any], complaint: str) -> None:
    with pytest.raises(LauncherError, match=complaint):
        files(vmi(source))


def test_the_iso_holds_the_files_under_the_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "CLOUD_INIT", tmp_path)
    cloudinit.prepare(vmi({"userData": "#!/bin/sh\necho hello\n", "networkData": "version: 2\n"}))
    iso = tmp_path / "ns1/testvmi/noCloud.iso"
    volume = iso.read_bytes()[32808 : 32808 + 32].decode().strip()
    assert volume == "cidata"
    listing = subprocess.run(
        ["xorriso", "-indev", str(iso), "-find", "/", "-type", "f"], capture_output=True, text=True, check=True
    ).stdout
    assert sorted(listing.split()) == ["'/meta-data'", "'/network-config'", "'/user-data'"]
    copy = tmp_path / "user-data"
    subprocess.run(
        ["xorriso", "-osirrox", "on", "-indev", str(iso), "-extract", "/user-data", str(copy)],
        capture_output=True,
        check=True,
    )
    assert copy.read_text() == "#!/bin/sh\necho hello\n"
    assert sorted(entry.name for entry in iso.parent.iterdir()) == ["noCloud.iso"], "no secret stays beside it"


def test_a_tool_that_fails_is_quoted_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "CLOUD_INIT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LauncherError, match=r"^xorrisofs does not start: No such file or directory$"):
        cloudinit.prepare(vmi({"userData": "x"}))
    assert not (tmp_path / "ns1/testvmi/data").exists()
