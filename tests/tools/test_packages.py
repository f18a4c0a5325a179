"""apt's answers, read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.guest import packages
from tools.guest.errors import GuestError

ANSWERS = {
    "qemu-guest-agent": "Package: qemu-guest-agent\nVersion: 1\nDepends: libc6 (>= 2), liba|libb\nSHA256: 11",
    "libc6": "Package: libc6\nVersion: 2.36\nDescription: the C library\n more of it\nSHA256: 22",
    "liba": "Package: liba\nVersion: 1\nDepends: libc6:any (>= 2)\nSHA256: 33",
}


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(argv: list[str], cwd: Path | None = None) -> str:
        assert argv[:2] == ["apt-cache", "show"]
        return "\n\n".join(ANSWERS[name] for name in argv[3:] if name in ANSWERS)

    monkeypatch.setattr(packages, "_run", answer)


@pytest.mark.usefixtures("apt")
def test_closure_follows_the_first_alternative() -> None:
    found = packages.closure(["qemu-guest-agent"])
    assert [(p.name, p.version) for p in found] == [
        ("liba", "1"),
        ("libc6", "2.36"),
        ("qemu-guest-agent", "1"),
    ]


@pytest.mark.usefixtures("apt")
def test_a_name_apt_does_not_know_is_named() -> None:
    with pytest.raises(GuestError, match="apt does not offer libmissing"):
        packages.lookup(["libc6", "libmissing"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("libc6 (>= 2.34), zlib1g", ("libc6", "zlib1g")),
        ("debconf (>= 0.5) | debconf-2.0, perl:any", ("debconf", "perl")),
    ],
)
def test_depends(text: str, names: tuple[str, ...]) -> None:
    assert packages.parse_depends(text) == names


def test_a_download_that_hashes_to_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def download(argv: list[str], cwd: Path | None = None) -> str:
        assert cwd is not None
        (cwd / "busybox_1_amd64.deb").write_bytes(b"not it")
        return ""

    monkeypatch.setattr(packages, "_run", download)
    with pytest.raises(GuestError, match="busybox: the download hashes to"):
        packages.fetch(packages.Package("busybox", "1", "ab" * 32), tmp_path / "debs")
    assert list((tmp_path / "debs").glob("*.deb")) == []


def test_a_missing_program_is_one_line() -> None:
    with pytest.raises(GuestError, match="no-such-program is not installed"):
        packages._run(["no-such-program"])
