"""What is read from a VMI and its secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvnode.launcher import cloudinit
from kvnode.launcher.cloudinit import CloudInitData
from kvnode.launcher.errors import LauncherError
from tests.launcher.cloudinit.machines import encoded, vmi


def read(machine: dict[str, Any], secrets: Path = Path("/nowhere")) -> CloudInitData:
    """What the VMI's cloud-init volume holds."""
    found = cloudinit.read(machine, secrets)
    assert found is not None
    return found


def credential(secret: str, method: str = "noCloud") -> dict[str, Any]:
    """An access credential that brings SSH keys."""
    source = {"secret": {"secretName": secret}}
    return {"sshPublicKey": {"source": source, "propagationMethod": {method: {}}}}


def write(directory: Path, **files: str) -> None:
    """Write files into a directory that is made for them."""
    directory.mkdir(parents=True)
    for name, content in files.items():
        (directory / name).write_text(content)


def test_base64_is_decoded_and_plain_text_wins() -> None:
    found = read(
        vmi(
            {
                "userData": "plain",
                "userDataBase64": encoded("no"),
                "networkDataBase64": encoded("version: 2\n"),
            }
        )
    )
    assert (found.user_data, found.network_data) == (b"plain", b"version: 2\n")
    assert read(vmi({"userDataBase64": encoded("only")})).user_data == b"only"


def test_network_data_alone_will_do_but_is_not_complete() -> None:
    found = read(vmi({"networkData": "version: 2"}))
    assert found.user_data == b""
    assert not found.is_complete
    assert read(vmi({"userData": "x"})).is_complete


@pytest.mark.parametrize("kind", ["cloudInitNoCloud", "cloudInitConfigDrive"])
@pytest.mark.parametrize("names", [("userdata", "networkdata"), ("userData", "networkData")])
def test_secrets_win_over_what_the_volume_says(tmp_path: Path, kind: str, names: tuple[str, str]) -> None:
    write(tmp_path / "ci", **{names[0]: "u", names[1]: "n"})
    references = {"secretRef": {"name": "s"}, "networkDataSecretRef": {"name": "s"}}
    found = read(vmi({**references, "userData": "inline"}, kind=kind), tmp_path)
    assert (found.user_data, found.network_data) == (b"u", b"n")
    assert found.source == ("noCloud" if kind == "cloudInitNoCloud" else "configDrive")


def test_a_secret_without_the_key_leaves_what_the_volume_says(tmp_path: Path) -> None:
    write(tmp_path / "ci", other="x")
    assert read(vmi({"secretRef": {"name": "s"}, "userData": "inline"}), tmp_path).user_data == b"inline"


def test_files_of_a_secret_that_is_not_referred_to_are_not_read(tmp_path: Path) -> None:
    write(tmp_path / "ci", userdata="u", networkdata="n")
    found = read(vmi({"networkDataSecretRef": {"name": "s"}, "userData": "inline"}), tmp_path)
    assert (found.user_data, found.network_data) == (b"inline", b"n")


def test_keys_are_numbered_through_the_secrets_of_this_way(tmp_path: Path) -> None:
    write(tmp_path / "k1-access-cred", b="two", a="one", empty="")
    write(tmp_path / "k1-access-cred/..2024", a="not this")
    (tmp_path / "k1-access-cred/..data").symlink_to("..2024")
    (tmp_path / "k1-access-cred/linked").symlink_to("..data/a")
    write(tmp_path / "k3-access-cred", c="three")
    credentials = [credential("k1"), credential("k2", "configDrive"), credential("k3"), {"userPassword": {}}]
    found = read(vmi({"userData": "x"}, accessCredentials=credentials), tmp_path)
    assert found.metadata is not None
    assert found.metadata.public_keys == {"0": "one", "1": "two", "2": "not this", "3": "three"}


def test_keys_whose_secret_is_missing_stop_the_machine(tmp_path: Path) -> None:
    machine = vmi({"userData": "x"}, accessCredentials=[credential("k1")])
    with pytest.raises(
        LauncherError, match=r"accessCredentials\[0\].sshPublicKey.source.secret: k1 cannot be read"
    ):
        cloudinit.read(machine, tmp_path)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ({}, "volume ci: cloudInitNoCloud: there must be user data or network data"),
        ({"userDataBase64": "not base64!"}, "volume ci: cloudInitNoCloud.userDataBase64 is not base64"),
        (
            {"secretRef": {"name": "s"}},
            "volume ci: cloudInitNoCloud: there must be user data or network data",
        ),
    ],
)
def test_what_cannot_be_read_is_named(source: dict[str, Any], complaint: str) -> None:
    with pytest.raises(LauncherError, match=complaint):
        read(vmi(source))


def test_a_machine_without_cloud_init() -> None:
    assert cloudinit.read({"metadata": {"name": "v", "namespace": "n"}, "spec": {}}) is None
