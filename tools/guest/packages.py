"""Debian packages as a source of files: ask apt for versions, download, unpack. Nothing gets installed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.guest.errors import GuestError

Say = Callable[[str], None]
"""Receives one line of progress."""


@dataclass(frozen=True, order=True)
class Package:
    """One binary package at the version that apt would install.

    Attributes:
        name: its name, such as ``busybox-static``.
        version: its full version, epoch and all.
        sha256: what its .deb file must hash to, in hex.
        depends: names it depends on, the first of each group of alternatives.
    """

    name: str
    version: str
    sha256: str
    depends: tuple[str, ...] = ()


def _run(argv: Sequence[str], cwd: Path | None = None) -> str:
    """Run a command for its standard output; a GuestError carries the last line it complained with."""
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False, env=_plain_env())
    except FileNotFoundError:
        raise GuestError(
            f"{argv[0]} is not installed: the guest is built on Debian, from its packages"
        ) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise GuestError(f"{argv[0]} failed with status {done.returncode}: {lines[-1]}")
    return done.stdout


def _plain_env() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C", "LANGUAGE": "C"}


def parse_stanzas(text: str) -> Iterator[dict[str, str]]:
    """The stanzas of a Debian control file, each as a mapping of field to value; continuation lines are
    joined.
    """
    for block in re.split(r"\n\s*\n", text.strip()):
        fields: dict[str, str] = {}
        last = ""
        for line in block.splitlines():
            if line[:1].isspace():
                fields[last] = fields.get(last, "") + "\n" + line.strip()
            elif ":" in line:
                last, value = line.split(":", 1)
                fields[last] = value.strip()
        if fields:
            yield fields


def parse_depends(text: str) -> tuple[str, ...]:
    """Names in a ``Depends`` field: versions and architectures are dropped, the first alternative is
    taken.
    """
    names = (re.split(r"[ (:|]", part.strip(), maxsplit=1)[0] for part in text.split(","))
    return tuple(name for name in names if name)


def lookup(names: Sequence[str]) -> list[Package]:
    """The packages of these names at their candidate versions.

    Raises:
        GuestError: apt knows nothing of one of them.
    """
    found: dict[str, Package] = {}
    for stanza in parse_stanzas(_run(["apt-cache", "show", "--no-all-versions", *names])):
        name = stanza.get("Package", "")
        if name not in found and "SHA256" in stanza:
            depends = parse_depends(stanza.get("Depends", ""))
            found[name] = Package(name, stanza["Version"], stanza["SHA256"], depends)
    missing = [name for name in names if name not in found]
    if missing:
        raise GuestError(f"apt does not offer {', '.join(missing)}: try `apt-get update`")
    return [found[name] for name in names]


def closure(names: Iterable[str]) -> list[Package]:
    """These packages and all that they depend on, sorted by name."""
    found: dict[str, Package] = {}
    todo = sorted(set(names))
    while todo:
        for package in lookup(todo):
            found[package.name] = package
        todo = sorted({name for p in found.values() for name in p.depends} - found.keys())
    return sorted(found.values())


def update_lists(say: Say) -> None:
    """Refresh apt's package lists; needs root.

    Raises:
        GuestError: not root, or apt failed.
    """
    if os.geteuid() != 0:
        raise GuestError("apt's package lists are missing or out of date: run `sudo apt-get update`")
    say("refreshing apt's package lists")
    _run(["apt-get", "update", "-q"])


def fetch(package: Package, cache: Path) -> Path:
    """The package's .deb file in the cache directory, downloaded when it is not there; its hash is checked.

    Raises:
        GuestError: it cannot be downloaded, or what arrived hashes to something else.
    """
    target = cache / f"{package.name}_{package.sha256[:16]}.deb"
    if target.is_file():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        sandbox = ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
        _run(["apt-get", "download", "-q", *sandbox, f"{package.name}={package.version}"], cwd=Path(scratch))
        (deb,) = Path(scratch).glob("*.deb")
        digest = hashlib.sha256(deb.read_bytes()).hexdigest()
        if digest != package.sha256:
            raise GuestError(
                f"{package.name}: the download hashes to {digest}, apt's list says {package.sha256}"
            )
        deb.replace(target)
    return target


def unpack(deb: Path, root: Path) -> Path:
    """The package's files below ``root``, in a directory of its own; unpacked once, whole or not at all."""
    target = root / deb.stem
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=root))
    try:
        _run(["dpkg", "-x", str(deb), str(scratch)])
        scratch.chmod(0o755)
        scratch.replace(target)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return target
