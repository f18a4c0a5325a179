"""Where the API server is and how to prove who we are: in a cluster, or by a kubeconfig file."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kvnode.kube.credentials import Credential, StaticToken, TokenCommand, TokenFile
from kvnode.kube.errors import ConfigurationError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where kubelet mounts a pod's service account."""


@dataclass(frozen=True)
class Configuration:
    """How to reach one API server."""

    server: str
    """URL, with a path below it if need be."""
    ca: bytes = b""
    """Certificates (PEM) that the server's must be of; the system's when empty."""
    verify: bool = True
    """False takes any certificate: `insecure-skip-tls-verify`."""
    server_name: str = ""
    """Name that the certificate must be for; the URL's host when empty."""
    client_certificate: bytes = b""
    client_key: bytes = b""
    credential: Credential = field(default_factory=StaticToken)
    namespace: str = "default"

    def ssl_context(self) -> ssl.SSLContext | None:
        """TLS settings; none for a server without TLS.

        Raises:
            ConfigurationError: a certificate or key cannot be used.
        """
        if urlsplit(self.server).scheme == "http":
            return None
        try:
            context = ssl.create_default_context(cadata=self.ca.decode() if self.ca else None)
            if not self.verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.client_certificate:
                # The ssl module reads these from files alone.
                with tempfile.NamedTemporaryFile() as pair:
                    pair.write(self.client_certificate + b"\n" + self.client_key)
                    pair.flush()
                    context.load_cert_chain(pair.name)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigurationError(f"{self.server}: a certificate or key cannot be used: {error}") from None
        return context


def in_cluster(
    directory: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ
) -> Configuration:
    """The configuration of a pod's service account.

    Raises:
        ConfigurationError: this is no pod, or it has no service account.
    """
    host, port = (environment.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if not host or not port:
        raise ConfigurationError(
            "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
        )
    try:
        ca = (directory / "ca.crt").read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{directory / 'ca.crt'}: {error.strerror}") from None
    try:
        namespace = (directory / "namespace").read_text().strip()
    except OSError:
        namespace = "default"
    host = f"[{host}]" if ":" in host else host
    return Configuration(
        f"https://{host}:{port}", ca, credential=TokenFile(directory / "token"), namespace=namespace
    )


def from_kubeconfig(path: Path, context: str = "") -> Configuration:
    """The configuration of a kubeconfig's context, the current one by default.

    Raises:
        ConfigurationError: the file, the context or what it names cannot be used.
    """
    document = _read_yaml(path)
    name = context or str(document.get("current-context") or "")
    if not name:
        raise ConfigurationError(f"{path}: current-context: is not set; name a context")
    chosen = _named(path, document, "contexts", name, "context")
    cluster_name, user_name = (str(chosen.get(part) or "") for part in ("cluster", "user"))
    cluster = _named(path, document, "clusters", cluster_name, "cluster")
    user = _named(path, document, "users", user_name, "user") if user_name else {}
    server = cluster.get("server")
    if not isinstance(server, str) or urlsplit(server).scheme not in ("http", "https"):
        raise ConfigurationError(
            f"{path}: clusters[{cluster_name}].cluster.server: must be an http or https URL"
        )
    where = f"{path}: users[{user_name}].user"
    return Configuration(
        server.rstrip("/"),
        ca=_blob(path, cluster, "certificate-authority", f"{path}: clusters[{cluster_name}].cluster"),
        verify=not cluster.get("insecure-skip-tls-verify"),
        server_name=str(cluster.get("tls-server-name") or ""),
        client_certificate=_blob(path, user, "client-certificate", where),
        client_key=_blob(path, user, "client-key", where),
        credential=_credential(path, user, where),
        namespace=str(chosen.get("namespace") or "default"),
    )


def discover(kubeconfig: Path | None = None) -> Configuration:
    """The configuration of the file given, else of the pod that this is, else of $KUBECONFIG or ~/.kube/config.

    Raises:
        ConfigurationError: none of them is there, or the first that is cannot be used.
    """
    if kubeconfig is not None:
        return from_kubeconfig(kubeconfig)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and not os.environ.get("KUBECONFIG"):
        return in_cluster()
    return from_kubeconfig(Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config"))


def _read_yaml(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 — a pod has no kubeconfig and need not pay for it

    try:
        document = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: is no YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(document, dict):
        raise ConfigurationError(f"{path}: is no kubeconfig")
    return document


def _named(path: Path, document: dict[str, Any], section: str, name: str, part: str) -> dict[str, Any]:
    entries = document.get(section)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name:
            found = entry.get(part)
            if isinstance(found, dict):
                return found
    raise ConfigurationError(f"{path}: {section}: has no entry {name!r} with a {part}")


def _blob(path: Path, section: dict[str, Any], name: str, where: str) -> bytes:
    data, file = section.get(f"{name}-data"), section.get(name)
    if data:
        try:
            return base64.b64decode(str(data), validate=False)
        except (binascii.Error, ValueError):
            raise ConfigurationError(f"{where}.{name}-data: is no base64") from None
    if file:
        return _file(path.parent / str(file), f"{where}.{name}")
    return b""


def _file(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{where}: {path}: {error.strerror}") from None


def _credential(path: Path, user: dict[str, Any], where: str) -> Credential:
    if user.get("token"):
        return StaticToken(str(user["token"]))
    if user.get("tokenFile"):
        return TokenFile(path.parent / str(user["tokenFile"]))
    if user.get("exec"):
        return _program(user["exec"], f"{where}.exec")
    unusable = [name for name in ("username", "auth-provider") if user.get(name)]
    if unusable:
        raise ConfigurationError(
            f"{where}.{unusable[0]}: is not supported; use token, tokenFile, a certificate or exec"
        )
    return StaticToken()


def _program(section: object, where: str) -> TokenCommand:
    if not isinstance(section, dict) or not isinstance(section.get("command"), str):
        raise ConfigurationError(f"{where}.command: must be the name of a program")
    arguments, entries = section.get("args") or [], section.get("env") or []
    if not isinstance(arguments, list):
        raise ConfigurationError(f"{where}.args: must be a list")
    if not isinstance(entries, list) or not all(
        isinstance(e, dict) and {"name", "value"} <= set(e) for e in entries
    ):
        raise ConfigurationError(f"{where}.env: must be a list of names and values")
    variables = {str(entry["name"]): str(entry["value"]) for entry in entries}
    api_version = str(section.get("apiVersion") or "client.authentication.k8s.io/v1")
    return TokenCommand([section["command"], *map(str, arguments)], variables, api_version)
