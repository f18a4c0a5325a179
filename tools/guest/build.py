"""The guest's build from end to end, and its cache.

The cache lies in ``$XDG_CACHE_HOME/kvnode/guest`` (``~/.cache`` when unset): ``debs/`` and ``unpacked/`` by
package hash, ``images/`` by a key over the packages' versions and this recipe. ``images/latest-RECIPE`` names
the newest key of a recipe, so that a later build with nothing changed asks apt nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.guest import disk, initrd, packages
from tools.guest.errors import GuestError
from tools.guest.packages import Package, Say

KERNEL = "linux-image-cloud-amd64"
"""The metapackage that depends on the current cloud kernel."""
BUSYBOX = "busybox-static"
AGENT = "qemu-guest-agent"
OUTPUTS = ("vmlinuz", "initrd.gz", "disk.raw", "disk.qcow2")
MANIFEST = "manifest.json"


def cache_directory() -> Path:
    """Where everything is kept between builds."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory rules: a relative path is to be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "kvnode" / "guest"


def recipe_key() -> str:
    """A short hash over this recipe: the tool's sources and the guest's scripts."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted(p for p in here.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        digest.update(f"{path.relative_to(here)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def image_key(chosen: Sequence[Package]) -> str:
    """A short hash over the recipe and the packages' versions and contents."""
    lines = [recipe_key(), *(f"{p.name} {p.version} {p.sha256}" for p in sorted(chosen))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def choose(say: Say) -> dict[str, list[Package]]:
    """The packages that each part of the guest comes from, at the versions apt offers now.

    Lists that are missing or too old are refreshed once, when root.
    """
    try:
        return _choose()
    except GuestError:
        packages.update_lists(say)
        return _choose()


def _choose() -> dict[str, list[Package]]:
    (meta,) = packages.lookup([KERNEL])
    images = [name for name in meta.depends if name.startswith("linux-image-")]
    if not images:
        raise GuestError(f"{KERNEL} {meta.version} depends on no linux-image package")
    return {
        "kernel": packages.lookup(images[:1]),
        "busybox": packages.lookup([BUSYBOX]),
        "agent": packages.closure([AGENT]),
    }


def build(out: Path, say: Say, *, refresh: bool = False, force: bool = False) -> Path:
    """Build the guest, or take it from the cache, and put its files into ``out``.

    Args:
        out: the directory to fill; made when missing. Its files are replaced whole.
        say: gets a line for each step.
        refresh: ask apt for newer packages even when the cache has a guest of this recipe.
        force: build anew even when the cache has the result.

    Returns:
        ``out``.

    Raises:
        GuestError: it cannot be built here.
    """
    if platform.machine() != "x86_64":
        raise GuestError(f"the demo guest is built on x86_64 only, this machine is {platform.machine()}")
    cache = cache_directory()
    latest = cache / "images" / f"latest-{recipe_key()}"
    with _locked(cache, say):
        if not refresh and not force and _complete(latest):
            say("the guest in the cache is of this recipe: taken as it is")
            return _deliver(latest, out)
        chosen = choose(say)
        every = sorted({p for group in chosen.values() for p in group})
        target = cache / "images" / image_key(every)
        if force or not _complete(target):
            roots = _obtain(every, cache, say)
            _compose(target, chosen, roots, say)
        _point(latest, target)
        return _deliver(target, out)


@contextmanager
def _locked(cache: Path, say: Say) -> Iterator[None]:
    """One build at a time, and none while the guest is copied out of the cache."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build of the guest is running: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _obtain(every: Sequence[Package], cache: Path, say: Say) -> dict[str, Path]:
    roots = {}
    for number, package in enumerate(every, start=1):
        say(f"package {number} of {len(every)}: {package.name} {package.version}")
        try:
            deb = packages.fetch(package, cache / "debs")
        except GuestError:
            # The mirror may have moved on since the lists were read.
            packages.update_lists(say)
            deb = packages.fetch(package, cache / "debs")
        roots[package.name] = packages.unpack(deb, cache / "unpacked")
    return roots


def _compose(target: Path, chosen: dict[str, list[Package]], roots: dict[str, Path], say: Say) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        say("initrd: busybox, modules and the guest agent")
        kernel, busybox = roots[chosen["kernel"][0].name], roots[chosen["busybox"][0].name]
        agent = initrd.agent_files([roots[p.name] for p in chosen["agent"]])
        (work / "vmlinuz").write_bytes(initrd.kernel_image(kernel))
        (work / "initrd.gz").write_bytes(initrd.compose(kernel, busybox, agent))
        say("disk image: GRUB for BIOS and UEFI")
        disk.write_raw(work / "disk.raw", work / "vmlinuz", work / "initrd.gz")
        disk.write_qcow2(work / "disk.qcow2", work / "disk.raw")
        (work / MANIFEST).write_text(_manifest(work, chosen))
        work.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        work.replace(target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def _manifest(work: Path, chosen: dict[str, list[Package]]) -> str:
    files = {name: hashlib.sha256((work / name).read_bytes()).hexdigest() for name in OUTPUTS}
    versions = {p.name: p.version for group in chosen.values() for p in group}
    return json.dumps({"files": files, "packages": dict(sorted(versions.items()))}, indent=2) + "\n"


def _complete(directory: Path) -> bool:
    return all((directory / name).is_file() for name in (*OUTPUTS, MANIFEST))


def _point(link: Path, target: Path) -> None:
    fresh = link.with_name(f"{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target.name)
    fresh.replace(link)


def _deliver(source: Path, out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    for name in (*OUTPUTS, MANIFEST):
        fresh = out / f".{name}.{os.getpid()}"
        _copy_sparse(source / name, fresh)
        fresh.replace(out / name)
    return out


def _copy_sparse(source: Path, target: Path, block: int = 1 << 16) -> None:
    """Copy, leaving out blocks of zeros; never a hard link, since a guest may write to its disk."""
    with source.open("rb") as reader, target.open("wb") as writer:
        while chunk := reader.read(block):
            if chunk.count(0) == len(chunk):
                writer.seek(len(chunk), os.SEEK_CUR)
            else:
                writer.write(chunk)
        writer.truncate()
