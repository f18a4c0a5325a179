"""Where the API server is: service accounts and kubeconfig files."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path

import pytest

from kvnode.kube.client import Client
from kvnode.kube.config import Configuration, discover, from_kubeconfig, in_cluster
from kvnode.kube.credentials import StaticToken, TokenCommand, TokenFile
from kvnode.kube.errors import ConfigurationError, ConnectionFailed, Forbidden, Unauthorized
from kvnode.kube.resources import NAMESPACES, SECRETS
from tests.cluster.cluster import Cluster
from tests.kube.loops import real_time

ADDRESS = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def kubeconfig(path: Path, **parts: object) -> Path:
    """A kubeconfig of one context; ``user`` and ``cluster`` replace its parts."""
    cluster = parts.get("cluster", {"server": "https://10.0.0.1:6443"})
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": parts.get("user", {"token": "t"})}],
    }
    file = path / "config"
    file.write_text(json.dumps({**document, **parts.get("document", {})}))  # type: ignore[dict-item]
    return file


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """A service account's files."""
    for name, content in {"token": "first\n", "namespace": "kubevirt", "ca.crt": "pem"}.items():
        (tmp_path / name).write_text(content)
    return tmp_path


@real_time
async def test_a_pod_has_a_service_account(account: Path) -> None:
    found = in_cluster(account, ADDRESS)
    assert (found.server, found.namespace, found.ca) == ("https://10.96.0.1:443", "kubevirt", b"pem")
    assert await found.credential.token() == "first"


def test_an_ipv6_service_address(account: Path) -> None:
    assert (
        in_cluster(account, {**ADDRESS, "KUBERNETES_SERVICE_HOST": "fd00::1"}).server
        == "https://[fd00::1]:443"
    )


def test_not_a_pod(account: Path) -> None:
    with pytest.raises(ConfigurationError, match="KUBERNETES_SERVICE_HOST"):
        in_cluster(account, {})
    (account / "ca.crt").unlink()
    with pytest.raises(ConfigurationError, match=r"ca\.crt: No such file"):
        in_cluster(account, ADDRESS)


@real_time
async def test_a_token_file_is_read_again(account: Path) -> None:
    seconds = 0.0
    token = TokenFile(account / "token", lambda: seconds)
    assert await token.token() == "first"
    (account / "token").write_text("second")
    seconds = 59
    assert await token.token() == "first"
    seconds = 61
    assert await token.token() == "second"
    (account / "token").write_text("third")
    token.reject()
    assert await token.token() == "third"
    (account / "token").unlink()
    token.reject()
    assert await token.token() == "third", "the old one is good for a while"


@real_time
async def test_a_token_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"token file .*none: No such file"):
        await TokenFile(tmp_path / "none").token()
    (tmp_path / "empty").write_text(" \n")
    with pytest.raises(ConfigurationError, match="it is empty"):
        await TokenFile(tmp_path / "empty").token()


def test_a_kubeconfig_with_data_inside(tmp_path: Path) -> None:
    encoded = base64.b64encode(b"pem").decode()
    file = kubeconfig(
        tmp_path,
        cluster={
            "server": "https://h:1/sub/",
            "certificate-authority-data": encoded,
            "tls-server-name": "kubernetes",
        },
        user={"client-certificate-data": encoded, "client-key-data": encoded},
    )
    found = from_kubeconfig(file)
    assert found.server == "https://h:1/sub"
    assert (found.ca, found.client_certificate, found.client_key) == (b"pem",) * 3
    assert (found.server_name, found.namespace) == ("kubernetes", "n")
    assert isinstance(found.credential, StaticToken)


def test_a_kubeconfig_s_files_are_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("pem")
    file = kubeconfig(tmp_path, cluster={"server": "https://h:1", "certificate-authority": "ca.pem"})
    assert from_kubeconfig(file).ca == b"pem"


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"document": {"current-context": ""}}, "current-context: is not set"),
        ({"document": {"current-context": "x"}}, "contexts: has no entry 'x'"),
        ({"document": {"contexts": 7}}, "contexts: has no entry 'c'"),
        ({"document": {"users": [None, {"name": "u"}]}}, "users: has no entry 'u'"),
        ({"cluster": {"server": "ftp://h"}}, "clusters[k].cluster.server: must be an http or https URL"),
        ({"cluster": {}}, "clusters[k].cluster.server: must be"),
        ({"cluster": {"server": "https://h", "certificate-authority": "none"}}, "No such file"),
        ({"cluster": {"server": "https://h", "certificate-authority-data": "x"}}, "is no base64"),
        ({"user": {"username": "u", "password": "p"}}, "users[u].user.username: is not supported"),
        ({"user": {"exec": {"args": []}}}, "users[u].user.exec.command: must be the name of a program"),
        ({"user": {"exec": {"command": "x", "env": [{"nam": "A"}]}}}, "users[u].user.exec.env: must be"),
        ({"user": {"exec": {"command": "x", "args": 5}}}, "users[u].user.exec.args: must be"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_said(
    tmp_path: Path, parts: dict[str, object], problem: str
) -> None:
    file = kubeconfig(tmp_path, **parts)
    with pytest.raises(ConfigurationError) as caught:
        from_kubeconfig(file)
    assert problem in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe\xfd", b"a: &a [*a, *b]", b"[" * 5000])
def test_files_that_are_no_kubeconfig(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config").write_bytes(content)
    with pytest.raises(ConfigurationError, match="is no"):
        from_kubeconfig(tmp_path / "config")


def test_which_file_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    file = kubeconfig(tmp_path)
    assert discover(file).server == "https://10.0.0.1:6443"
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert discover().server == "https://10.0.0.1:6443"
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(ConfigurationError, match=r"home/\.kube/config: No such file"):
        discover()


def test_certificates_that_are_none() -> None:
    with pytest.raises(ConfigurationError, match="cannot be used"):
        Configuration("https://h", ca=b"pem").ssl_context()
    with pytest.raises(ConfigurationError, match="cannot be used"):
        Configuration("https://h", client_certificate=b"pem", client_key=b"pem").ssl_context()
    with pytest.raises(ConfigurationError, match="cannot be used"):
        Configuration("https://h", ca=b"\xff").ssl_context()


def test_verification_is_on_unless_the_file_says_otherwise() -> None:
    on, off = (Configuration("https://h", verify=verify).ssl_context() for verify in (True, False))
    assert on is not None
    assert off is not None
    assert (on.verify_mode, on.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert off.verify_mode == ssl.CERT_NONE
    assert Configuration("http://h").ssl_context() is None


def program(path: Path, body: str) -> list[str]:
    """A credential program."""
    file = path / "credential"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return [str(file)]


@real_time
async def test_a_program_gives_tokens_until_they_expire(tmp_path: Path) -> None:
    answer = '{"status": {"token": "t-%s", "expirationTimestamp": "1970-01-01T00:01:40Z"}}'
    body = f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); echo $((n + 1)) > {tmp_path}/n; printf '{answer}' $n$EXTRA"
    now = 0.0
    token = TokenCommand(
        program(tmp_path, body), {"EXTRA": "x"}, "client.authentication.k8s.io/v1", lambda: now
    )
    assert [await token.token() for _ in range(2)] == ["t-0x", "t-0x"]
    now = 100
    assert await token.token() == "t-1x"
    now = 0
    token.reject()
    assert await token.token() == "t-2x"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("echo broken >&2; exit 3", "exit code 3: broken"),
        ("echo '{}'", "printed no ExecCredential"),
        ("echo no JSON", "printed no ExecCredential"),
        ('echo \'{"status": {"token": 5}}\'', "status.token is no text"),
        ('echo \'{"status": {"token": "a", "expirationTimestamp": "soon"}}\'', "printed no ExecCredential"),
    ],
)
@real_time
async def test_a_program_that_fails(tmp_path: Path, body: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await TokenCommand(program(tmp_path, body), {}, "v1").token()
    assert problem in str(caught.value)


@real_time
async def test_a_program_that_is_not_there() -> None:
    with pytest.raises(ConfigurationError, match="no-such-program: No such file"):
        await TokenCommand(["no-such-program"], {}, "v1").token()


@pytest.mark.cluster
@real_time
async def test_a_service_account_against_the_real_server(
    control_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Its token is taken from the file, rejected when wrong, read again then, and has its account's rights."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    good = control_plane.request("POST", path, request)["status"]["token"]
    (tmp_path / "token").write_text("stale")
    (tmp_path / "ca.crt").write_bytes(control_plane.ca.read_bytes())
    host, port = control_plane.server.removeprefix("https://").split(":")
    found = in_cluster(tmp_path, {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port})
    async with Client(found) as client:
        with pytest.raises(Unauthorized):
            await client.list_all(NAMESPACES)
        (tmp_path / "token").write_text(good)
        with pytest.raises(Forbidden, match=f"system:serviceaccount:{namespace}:default"):
            await client.list_all(SECRETS, namespace)


@pytest.mark.cluster
@real_time
async def test_a_server_of_another_authority_is_not_spoken_to(control_plane: Cluster) -> None:
    async with Client(Configuration(control_plane.server)) as client:
        with pytest.raises(ConnectionFailed, match=r"certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
            await client.get(NAMESPACES, "default")
