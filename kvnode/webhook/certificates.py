"""The webhooks' own certificate authority and serving certificate: made, and renewed in time, with openssl.

One authority signs one serving certificate. Before either runs out it is replaced, the authority in two steps: first
its successor is made known, and only when every API server has had the time to learn of it does it sign.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
import subprocess
import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)
_NAME = re.compile(r"(?:DNS|IP Address):([^,\s]+)")
BACKDATED = timedelta(hours=1)
"""A certificate is valid since so long before it was made: for API servers and replicas whose clocks are behind."""

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class CertificateError(Exception):
    """openssl is not there or failed, or what is stored is no certificate; the message is one line."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long things last; they are renewed when two thirds of it are over."""

    authority: int = 365
    """Days."""
    serving: int = 90
    """Days."""
    overlap: float = 3600.0
    """Seconds for which a new authority is known before it signs."""


@dataclass(frozen=True, slots=True)
class Material:
    """All that the replicas share."""

    authority: Pair
    serving: Pair
    successor: Pair | None = None
    """The authority that signs next."""
    former: tuple[bytes, ...] = ()
    """Certificates of authorities that signed before and have not run out."""

    @property
    def bundle(self) -> bytes:
        """The certificates (PEM) that the API server is to trust."""
        coming = () if self.successor is None else (self.successor.certificate,)
        return b"".join((self.authority.certificate, *coming, *self.former))


def certificates(pem: bytes) -> list[bytes]:
    """The single certificates in a PEM text."""
    return _PEM.findall(pem)


def make(names: tuple[str, ...], lifetimes: Lifetimes | None = None) -> Material:
    """A new authority and a serving certificate of it for these DNS names and IP addresses.

    Raises:
        CertificateError: openssl failed.
    """
    lifetimes = lifetimes or Lifetimes()
    authority = _authority(lifetimes)
    return Material(authority, _serving(authority, names, lifetimes))


def check(material: Material) -> None:
    """See that each key is its certificate's, and that the authority signed what is served.

    Raises:
        CertificateError: the material cannot be used; the message says why.
    """
    pairs = {"authority": material.authority, "serving": material.serving, "successor": material.successor}
    with tempfile.TemporaryDirectory() as name:
        authority, serving = Path(name, "ca.crt"), Path(name, "tls.crt")
        for what, pair in pairs.items():
            if pair is None:
                continue
            both = Path(name, "both")
            both.write_bytes(pair.certificate + b"\n" + pair.key)
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(both)
            except ssl.SSLError as error:
                reason = error.reason or "cannot be read"
                raise CertificateError(f"the {what} certificate and its key: {reason}") from None
        authority.write_bytes(material.authority.certificate)
        serving.write_bytes(material.serving.certificate)
        _openssl("verify", "-no_check_time", "-CAfile", str(authority), str(serving))


def renewed(
    material: Material, names: tuple[str, ...], now: float, lifetimes: Lifetimes | None = None
) -> Material:
    """The material as it should be at the time `now` (seconds since 1970): the very same if nothing is due.

    One step a call, so that what is served is always signed by what was in an earlier bundle.

    Raises:
        CertificateError: openssl failed, or the material is none.
    """
    lifetimes = lifetimes or Lifetimes()
    begin, end = _validity(material.authority.certificate)
    if not begin <= now < end:  # it ran out, or was made by a clock that was far ahead
        return make(names, lifetimes)
    if material.successor is not None:
        known_since = _validity(material.successor.certificate)[0] + BACKDATED.total_seconds()
        if now < known_since + lifetimes.overlap and now < end - lifetimes.overlap:
            return _serving_renewed(material, names, now, lifetimes)
        successor = material.successor
        former = (material.authority.certificate, *_unexpired(material.former, now))
        return Material(successor, _serving(successor, names, lifetimes), None, former)
    if _is_due(begin, end, now):
        return replace(material, successor=_authority(lifetimes))
    former = tuple(_unexpired(material.former, now))
    if former != material.former:
        return replace(material, former=former)
    return _serving_renewed(material, names, now, lifetimes)


def _serving_renewed(
    material: Material, names: tuple[str, ...], now: float, lifetimes: Lifetimes
) -> Material:
    begin, end = _validity(material.serving.certificate)
    if (
        now >= begin
        and not _is_due(begin, end, now)
        and _names(material.serving.certificate) == _wanted(names)
    ):
        return material
    return replace(material, serving=_serving(material.authority, names, lifetimes))


def _is_due(begin: float, end: float, now: float) -> bool:
    return now >= begin + (end - begin) * 2 / 3


def _unexpired(pems: tuple[bytes, ...], now: float) -> list[bytes]:
    return [pem for pem in pems if _validity(pem)[1] > now]


def _authority(lifetimes: Lifetimes) -> Pair:
    extensions = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")
    return _made("/CN=kvnode webhook authority", lifetimes.authority, extensions)


def _serving(authority: Pair, names: tuple[str, ...], lifetimes: Lifetimes) -> Pair:
    alternatives = ",".join(sorted(_alternative(name) for name in names))
    extensions = (
        "basicConstraints=critical,CA:FALSE",
        "extendedKeyUsage=serverAuth",
        f"subjectAltName={alternatives}",
    )
    # It may not outlive who signed it.
    return _made("/CN=kvnode webhook", min(lifetimes.serving, lifetimes.authority), extensions, authority)


def _alternative(name: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        return f"DNS:{name}"


_CONFIGURATION = """
[req]
distinguished_name = subject
[subject]
[ca]
default_ca = webhook
[webhook]
database = index
new_certs_dir = .
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
x509_extensions = extensions
[any]
commonName = supplied
[extensions]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
"""For ``openssl ca``, which alone can date a certificate back in every version; a container may lack openssl's own."""


def _made(subject: str, days: int, extensions: tuple[str, ...], signer: Pair | None = None) -> Pair:
    now = datetime.now(UTC)
    dates = (f"{moment:%Y%m%d%H%M%SZ}" for moment in (now - BACKDATED, now + timedelta(days=days)))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "index").touch()
        (directory / "config").write_text(_CONFIGURATION + "\n".join(extensions) + "\n")
        signing = ["-selfsign", "-keyfile", "key"]
        if signer is not None:
            (directory / "ca.crt").write_bytes(signer.certificate)
            (directory / "ca.key").write_bytes(signer.key)
            signing = ["-cert", "ca.crt", "-keyfile", "ca.key"]
        _openssl(
            *("req", "-new", "-config", "config", *_NEW_KEY, "-subj", subject),
            *("-keyout", "key", "-out", "csr"),
            cwd=directory,
        )
        _openssl(
            *("ca", "-batch", "-notext", "-config", "config", *signing, "-in", "csr", "-out", "certificate"),
            *("-startdate", next(dates), "-enddate", next(dates)),
            cwd=directory,
        )
        return Pair((directory / "certificate").read_bytes(), (directory / "key").read_bytes())


def _validity(pem: bytes) -> tuple[float, float]:
    """From when to when a certificate is valid, in seconds since 1970."""
    lines = _openssl("x509", "-noout", "-dates", text=pem).decode().splitlines()
    dates = dict(line.split("=", 1) for line in lines if "=" in line)
    try:
        begin, end = (ssl.cert_time_to_seconds(dates[name]) for name in ("notBefore", "notAfter"))
    except (KeyError, ValueError):
        raise CertificateError("openssl names no dates of a certificate") from None
    return float(begin), float(end)


def _names(pem: bytes) -> set[str]:
    """The names that a certificate is for."""
    text = _openssl("x509", "-noout", "-ext", "subjectAltName", text=pem).decode()
    return {_plain(name) for name in _NAME.findall(text)}


def _wanted(names: tuple[str, ...]) -> set[str]:
    return {_plain(name) for name in names}


def _plain(name: str) -> str:
    """A name however it is written: openssl writes IPv6 addresses in its own way."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


def _openssl(*arguments: str, text: bytes | None = None, cwd: Path | None = None) -> bytes:
    command = ["openssl", *arguments]
    try:
        done = subprocess.run(command, input=text, cwd=cwd, capture_output=True, check=False, timeout=30)
    except FileNotFoundError:
        raise CertificateError(
            "openssl is not installed: the webhooks make their certificates with it"
        ) from None
    except subprocess.TimeoutExpired:
        raise CertificateError(f"openssl {arguments[0]}: did not end within 30 s") from None
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise CertificateError(f"openssl {arguments[0]}: {last}")
    return done.stdout
