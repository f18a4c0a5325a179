"""The webhooks' certificates: what they are good for, and that each is renewed before it runs out."""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kvnode.webhook import certificates
from kvnode.webhook.certificates import (
    BACKDATED,
    CertificateError,
    Lifetimes,
    Material,
    Pair,
    check,
    make,
    renewed,
)
from kvnode.webhook.server import load, make_tls

NAMES = ("localhost", "kvnode-webhook.kvnode.svc", "127.0.0.1", "fd00::1")
DAY = 86400.0
NOW = time.time()


@pytest.fixture(scope="module")
def material() -> Material:
    return make(NAMES)


def handshake(shown: Pair, trusted: bytes, name: str) -> None:
    """A TLS connection, in memory, of a client that trusts these certificates."""
    client = ssl.create_default_context(cadata=trusted.decode())
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    left = client.wrap_bio(to_client, to_server, server_hostname=name)
    right = make_tls(shown).wrap_bio(to_server, to_client, server_side=True)
    done: set[ssl.SSLObject] = set()
    for _ in range(10):
        for side in (left, right):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue
        if len(done) == 2:
            return
    raise AssertionError("the handshake does not end")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_good_for_every_name(material: Material, name: str) -> None:
    handshake(material.serving, material.bundle, name)


def test_it_is_good_for_no_other_name_and_no_other_authority(material: Material) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(material.serving, material.bundle, "elsewhere")
    with pytest.raises(ssl.SSLCertVerificationError, match=r"unable to get local issuer|self.signed"):
        handshake(material.serving, make(NAMES).bundle, "localhost")


def test_nothing_is_renewed_before_its_time(material: Material) -> None:
    assert renewed(material, NAMES, NOW) is material
    assert renewed(material, NAMES, NOW + 59 * DAY) is material
    assert renewed(material, tuple(reversed(NAMES)), NOW) is material


def test_the_serving_certificate_is_renewed_by_the_same_authority(material: Material) -> None:
    after = renewed(material, NAMES, NOW + 61 * DAY)
    assert after.serving != material.serving
    assert after.bundle == material.bundle
    handshake(after.serving, material.bundle, "localhost")


def test_other_names_need_another_certificate(material: Material) -> None:
    after = renewed(material, ("other.svc",), NOW)
    handshake(after.serving, material.bundle, "other.svc")
    assert renewed(after, ("other.svc",), NOW) is after


def test_a_new_authority_is_known_before_it_signs(material: Material) -> None:
    due = NOW + 250 * DAY
    material = renewed(material, NAMES, NOW)
    known = renewed(material, NAMES, due)
    assert known.successor is not None
    assert known.serving == material.serving
    assert known.bundle == material.authority.certificate + known.successor.certificate
    # As little time as this cannot have passed for every API server.
    fresh = renewed(known, NAMES, time.time() + 60)
    assert fresh.successor == known.successor
    signed = renewed(known, NAMES, due)
    assert signed.authority == known.successor
    assert signed.successor is None
    assert signed.former == (material.authority.certificate,)
    handshake(signed.serving, known.bundle, "localhost")
    handshake(material.serving, signed.bundle, "localhost")


def test_an_authority_that_ran_out_is_forgotten(material: Material) -> None:
    later = make(NAMES, Lifetimes(authority=3650, serving=900))
    both = replace(later, former=(material.authority.certificate,))
    assert renewed(both, NAMES, NOW + 300 * DAY) is both
    assert renewed(both, NAMES, NOW + 366 * DAY).former == ()


def test_after_a_long_sleep_all_is_made_anew(material: Material) -> None:
    after = renewed(material, NAMES, NOW + 400 * DAY)
    assert after.authority != material.authority
    handshake(after.serving, after.bundle, "localhost")


def test_what_is_no_certificate_is_said_so(material: Material) -> None:
    with pytest.raises(CertificateError, match="openssl x509: "):
        renewed(replace(material, authority=Pair(b"nonsense", b"")), NAMES, NOW)


def test_it_is_good_for_clocks_that_are_behind(material: Material) -> None:
    behind = NOW - BACKDATED.total_seconds() / 2
    for pair in (material.authority, material.serving):
        begin, end = certificates._validity(pair.certificate)
        assert begin < behind < end
    assert renewed(material, NAMES, behind) is material


def test_what_a_clock_far_ahead_made_is_made_anew(material: Material) -> None:
    corrected = NOW - 30 * DAY
    assert renewed(material, NAMES, corrected).authority != material.authority


def test_a_serving_certificate_of_the_future_is_replaced(
    material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = datetime.now(UTC) + timedelta(days=9)
    with monkeypatch.context() as patched:
        patched.setattr(certificates, "datetime", type("Ahead", (), {"now": lambda _: ahead}))
        odd = replace(material, serving=make(NAMES).serving)
    after = renewed(odd, NAMES, NOW)
    assert after.authority == material.authority
    handshake(after.serving, after.bundle, "localhost")


def test_what_fits_together_is_sound(material: Material) -> None:
    check(material)
    check(replace(material, successor=make(NAMES).authority))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("authority", "the authority certificate and its key: KEY_VALUES_MISMATCH"),
        ("serving", "the serving certificate and its key: KEY_VALUES_MISMATCH"),
        ("successor", "the successor certificate and its key: KEY_VALUES_MISMATCH"),
        ("signature", "openssl verify: "),
    ],
)
def test_what_does_not_fit_together_is_said(material: Material, part: str, message: str) -> None:
    other = make(NAMES)
    odd = {
        "authority": replace(material, authority=replace(material.authority, key=other.authority.key)),
        "serving": replace(material, serving=replace(material.serving, key=other.serving.key)),
        "successor": replace(material, successor=replace(material.authority, key=other.serving.key)),
        "signature": replace(material, serving=other.serving),
    }[part]
    with pytest.raises(CertificateError, match=message):
        check(odd)


def test_without_openssl_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CertificateError, match="openssl is not installed"):
        make(NAMES)


def test_openssl_needs_no_configuration_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENSSL_CONF", str(tmp_path / "none"))
    made = make(NAMES)
    check(made)
    handshake(made.serving, made.bundle, "localhost")


def test_keys_are_left_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(certificates.tempfile, "tempdir", str(tmp_path))
    make_tls(make(NAMES).serving)
    assert list(tmp_path.iterdir()) == []


def test_a_server_shows_the_new_certificate_without_a_pause(material: Material) -> None:
    other = make(NAMES)
    context = make_tls(material.serving)
    load(context, other.serving)

    async def connect() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        trusting = ssl.create_default_context(cadata=other.bundle.decode())
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        writer.close()
        server.close()
        await server.wait_closed()

    asyncio.run(connect())
