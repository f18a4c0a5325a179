"""Write kubeconfig files."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.cluster.pki import Pair


def write(path: Path, name: str, server: str, ca: Path, client: Pair) -> None:
    """A kubeconfig (as JSON, which is YAML) for one server and one client certificate, all of it inside."""

    def inline(file: Path) -> str:
        return base64.b64encode(file.read_bytes()).decode()

    cluster = {"server": server, "certificate-authority-data": inline(ca)}
    user = {"client-certificate-data": inline(client.certificate), "client-key-data": inline(client.key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=1))


def server_of(path: Path) -> str:
    """The server that a kubeconfig written here names."""
    return str(json.loads(path.read_text())["clusters"][0]["cluster"]["server"])
