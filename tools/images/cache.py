"""What was built, by the content that it is of, in ``$XDG_CACHE_HOME/kvnode/images`` (``~/.cache`` when unset)."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Say = Callable[[str], None]

#: How many of a kind stay: the newest, and what a checkout beside it may use.
KEPT = 4
_SCRATCH = "scratch-"


def cache_directory() -> Path:
    """The cache; made when missing."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory rules: a relative path is to be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    directory = root / "kvnode" / "images"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def key(*parts: str | bytes) -> str:
    """A short hash over the parts."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(content)}:".encode() + content)
    return digest.hexdigest()[:16]


@contextmanager
def locked(cache: Path, say: Say) -> Iterator[None]:
    """One build at a time; what killed ones left is cleared away."""
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build of images is running: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{_SCRATCH}*"):
            remove(left)
        yield


@contextmanager
def made(target: Path) -> Iterator[Path]:
    """A path to build ``target`` at: it gets its name when it is whole, and goes away when the block fails."""
    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=target.parent))
    scratch.chmod(0o755)  # apt downloads as a user of its own
    try:
        yield scratch / target.name
        (scratch / target.name).rename(target)
    finally:
        remove(scratch)
    prune(target)


def used(path: Path) -> bool:
    """Whether ``path`` is there; if so it counts as the newest of its kind."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def prune(target: Path) -> None:
    """Remove all but the newest of the kind of ``target``, whose name is ``KIND-KEY`` with any suffix."""
    kind, _, rest = target.name.rpartition("-")
    suffix = rest.partition(".")[2]
    alike = [
        path
        for path in target.parent.glob(f"{kind}-*")
        if path.name.rpartition("-")[0] == kind and path.name.partition(".")[2] == suffix
    ]
    for path in sorted(alike, key=lambda path: path.stat().st_mtime, reverse=True)[KEPT:]:
        remove(path)


def remove(path: Path) -> None:
    """Remove a file or a tree."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
