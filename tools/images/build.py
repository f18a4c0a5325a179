"""All images from end to end."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.guest.build import build as build_guest
from tools.guest.build import recipe_key as guest_key
from tools.guest.errors import GuestError
from tools.images import cache as store
from tools.images.cache import Say, key, made, used
from tools.images.environment import CONTAINER_DISK, check_programs, environment, links
from tools.images.errors import ImageError
from tools.images.oci import write_archive
from tools.images.recipe import QEMU, Recipe, recipes
from tools.images.roots import builder, root_of

NEEDED = {
    "mmdebstrap": "mmdebstrap",
    "unshare": "util-linux",
    "setpriv": "util-linux",
}
#: What the code here adds to an archive; to be raised when it changes.
_FORM = "1"


@dataclass(frozen=True)
class Image:
    """One image that is built."""

    name: str
    references: tuple[str, ...]
    archive: str
    """Path of the OCI archive."""
    digest: str
    """Of its manifest, as containerd lists it."""
    size: int
    """Of the archive, in bytes."""


def build(names: Sequence[str], say: Say, *, refresh: bool = False) -> list[Image]:
    """Build images, or find them in the cache.

    Args:
        names: which; none is all.
        say: gets a line for each step.
        refresh: take what Debian has now, whatever the cache holds.

    Raises:
        ImageError: that is not possible here.
    """
    known = {recipe.name: recipe for recipe in recipes()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ImageError(f"there is no image {', '.join(unknown)}; there are: {', '.join(known)}")
    check()
    cache = store.cache_directory()
    chosen = [known[name] for name in names or known]
    with store.locked(cache, say):
        programs = None  # of one state of the sources in all images
        if any(recipe.packages for recipe in chosen):
            programs = environment(builder(cache, say, refresh=refresh), cache, say, refresh=refresh)
        return [_image(recipe, programs, cache, say, refresh=refresh) for recipe in chosen]


def check() -> None:
    """Raises ImageError when this machine cannot build images."""
    if platform.machine() != "x86_64":
        raise ImageError(f"images are built on x86_64 only, this machine is {platform.machine()}")
    if os.geteuid() != 0:
        raise ImageError("building images needs root")
    missing = sorted(package for program, package in NEEDED.items() if shutil.which(program) is None)
    if missing:
        raise ImageError(f"missing Debian packages: {' '.join(dict.fromkeys(missing))}")


def _image(recipe: Recipe, programs: Path | None, cache: Path, say: Say, *, refresh: bool) -> Image:
    if recipe.packages and programs is not None:
        root = root_of(recipe, cache, say, refresh=refresh)
        check_programs(programs, recipe.programs)
        parts = [root.name, str(root.stat().st_ino), programs.name, *recipe.programs]
    else:
        parts = [guest_key()]
    archive = cache / f"{recipe.name}-{key(_FORM, *parts, *recipe.references, recipe.user)}.tar"
    record = archive.with_suffix(".json")
    if used(archive) and used(record) and not (refresh and not recipe.packages):
        return _read(record)
    say(f"{recipe.name}: the archive")
    with made(archive) as unfinished:
        layer = unfinished.with_name("layer.tar")
        if recipe.packages and programs is not None:
            _compose(layer, root, programs, recipe)
        else:
            _guest_layer(layer, say, refresh=refresh)
        digest = write_archive(layer, unfinished, recipe.references, user=recipe.user)
        size = unfinished.stat().st_size
    image = Image(recipe.name, recipe.references, str(archive), digest, size)
    with made(record) as unfinished:
        unfinished.write_text(json.dumps(asdict(image)))
    return image


def _read(record: Path) -> Image:
    found = json.loads(record.read_text())
    return Image(**{**found, "references": tuple(found["references"])})


def _compose(layer: Path, root: Path, programs: Path, recipe: Recipe) -> None:
    """The root with the environment and the programs' names."""
    shutil.copyfile(root, layer)
    with tarfile.open(layer, "a") as out, tarfile.open(programs) as environment_tar:
        for member in environment_tar:
            if member.name != CONTAINER_DISK or recipe.name == "launcher":
                out.addfile(member, environment_tar.extractfile(member) if member.isreg() else None)
        for link, content in links(recipe.programs):
            out.addfile(link, content)


def _guest_layer(layer: Path, say: Say, *, refresh: bool) -> None:
    """The demo guest's disk, as containerDisk wants it."""
    try:
        files = build_guest(layer.with_name("guest"), say, refresh=refresh)
    except GuestError as error:
        raise ImageError(f"the demo guest: {error}") from None
    with tarfile.open(layer, "w") as out:
        for name, source in (("disk", None), ("disk/disk.qcow2", files / "disk.qcow2")):
            info = tarfile.TarInfo(name)
            info.uid = info.gid = QEMU
            if source is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o555
                out.addfile(info)
            else:
                info.size, info.mode = source.stat().st_size, 0o440
                with source.open("rb") as content:
                    out.addfile(info, content)
