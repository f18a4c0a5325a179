"""A certificate authority for one cluster, and certificates of it, made with openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError

DAYS = "30"


@dataclass(frozen=True)
class Pair:
    """Paths of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """The authority whose files are in ``directory``: ca.crt, ca.key and what it issued."""

    def __init__(self, directory: Path) -> None:
        """Make the authority; the directory is made if it is not there."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.ca = Pair(directory / "ca.crt", directory / "ca.key")
        extensions = ["-addext", "keyUsage=critical,keyCertSign,digitalSignature,cRLSign"]
        _request(self.ca, "/CN=kvnode test cluster", extensions)

    def issue(
        self, name: str, user: str, groups: tuple[str, ...] = (), addresses: tuple[str, ...] = ()
    ) -> Pair:
        """A certificate for ``user`` in ``groups``, good for client and, with ``addresses``, server.

        Addresses are openssl's alternative names: ``IP:127.0.0.1``, ``DNS:localhost``.
        """
        pair = Pair(self.directory / f"{name}.crt", self.directory / f"{name}.key")
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        usage = "clientAuth,serverAuth" if addresses else "clientAuth"
        extensions = ["-addext", f"extendedKeyUsage={usage}", "-addext", "basicConstraints=critical,CA:FALSE"]
        if addresses:
            extensions += ["-addext", f"subjectAltName={','.join(addresses)}"]
        _request(pair, subject, [*extensions, "-CA", str(self.ca.certificate), "-CAkey", str(self.ca.key)])
        return pair

    def service_account_key(self) -> Path:
        """A key that signs service accounts' tokens."""
        path = self.directory / "service-account.key"
        _openssl("genrsa", "-out", str(path), "2048")
        return path


def _request(pair: Pair, subject: str, arguments: list[str]) -> None:
    _openssl(
        *(
            "req",
            "-x509",
            "-nodes",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-days",
            DAYS,
        ),
        *("-keyout", str(pair.key), "-out", str(pair.certificate), "-subj", subject, *arguments),
    )


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ClusterError(f"openssl {arguments[0]} failed: {last}")
