"""The virtual environment of the images, and container-disk: built inside the builder's root, as one tar."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tools.images import cache as store
from tools.images.cache import Say, key, made, used
from tools.images.errors import ImageError
from tools.images.recipe import PREFIX, SOURCE
from tools.images.run import run_inside

REQUIREMENTS = Path(__file__).parent / "requirements"
CONTAINER_DISK = "usr/bin/container-disk"
_PROJECT = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
_NATIVE = "native/container-disk/container-disk.c"
_SUFFIXES = {".py", ".pyi", ".pyx", ".pxd", ".hpp", ".cpp", ".typed"}

_TOOLS = """\
set -eu
rm -rf /opt/build
python3 -m venv /opt/build
/opt/build/bin/pip install --quiet --no-cache-dir --require-hashes --no-deps -r /build/build.txt
cp /build/build.txt /opt/build/made-of
"""
_WHEELS = """\
set -eu
/opt/build/bin/pip wheel --quiet --no-cache-dir --no-build-isolation --require-hashes --no-deps \\
  -r /build/run.txt -w /build/wheels
"""
# Containers cannot write byte code, so it is made here, and by content: times in the tar are all the same.
_ENVIRONMENT = """\
set -eu
cd /build
/opt/build/bin/pip wheel --quiet --no-cache-dir --no-build-isolation --no-index --no-deps ./source -w project
rm -rf "$1"
python3 -m venv --without-pip "$1"
/opt/build/bin/pip --python "$1/bin/python" install --quiet --no-index --no-deps --no-compile wheels/*.whl project/*.whl
"$1/bin/python" -m compileall -q --invalidation-mode unchecked-hash "$1/lib"
gcc -std=c11 -D_GNU_SOURCE -Os -Wall -Wextra -Werror -static -ffunction-sections -Wl,--gc-sections -s \\
  -o container-disk source/native/container-disk/container-disk.c
"""


def sources() -> list[Path]:
    """What the project's wheel and container-disk are made of."""
    code = (path for path in (SOURCE / "kvnode").rglob("*") if path.suffix in _SUFFIXES)
    # Cython writes its C++ beside its sources.
    kept = [path for path in code if path.suffix != ".cpp" or path.parent.name == "core"]
    return sorted([*kept, *(SOURCE / name for name in (*_PROJECT, _NATIVE))])


def environment(builder: Path, cache: Path, say: Say) -> Path:
    """A tar with ``PREFIX``, the virtual environment, and container-disk.

    Raises:
        ImageError: something does not build.
    """
    parts: list[str | bytes] = [builder.name, _ENVIRONMENT]
    for path in sources():
        parts += [str(path.relative_to(SOURCE)), path.read_bytes()]
    parts += [path.read_bytes() for path in _requirements()]
    target = cache / f"environment-{key(*parts)}.tar"
    if used(target):
        return target
    with made(target) as unfinished:
        log = unfinished.parent / "log"
        work = builder / "build"
        store.remove(work)
        work.mkdir()
        for path in _requirements():
            shutil.copy(path, work)
        wheels = _wheels(builder, cache, say, log)
        shutil.copytree(wheels, work / "wheels", dirs_exist_ok=True)
        for path in sources():
            copy = work / "source" / path.relative_to(SOURCE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        say("environment: the project's wheel, and all wheels installed")
        run_inside(builder, "environment", ["bash", "-c", _ENVIRONMENT, "make", PREFIX], say, log)
        with tarfile.open(unfinished, "w") as out:
            out.add(builder / PREFIX.strip("/"), PREFIX.strip("/"), filter=_plain)
            out.add(work / "container-disk", CONTAINER_DISK, filter=_plain)
        store.remove(work)
    return target


def _requirements() -> Iterator[Path]:
    yield REQUIREMENTS / "build.txt"
    yield REQUIREMENTS / "run.txt"


def _wheels(builder: Path, cache: Path, say: Say, log: Path) -> Path:
    """The directory of the pinned wheels; libvirt's binding is built."""
    tools, run = (path.read_bytes() for path in _requirements())
    made_of = builder / "opt/build/made-of"
    if not made_of.exists() or made_of.read_bytes() != tools:
        say("builder: tools to build wheels with")
        run_inside(builder, "builder", ["bash", "-c", _TOOLS], say, log)
    target = cache / f"wheels-{key(builder.name, tools, run)}"
    if used(target):
        return target
    say("wheels: the pinned ones, and libvirt's binding built")
    with made(target) as unfinished:
        run_inside(builder, "wheels", ["bash", "-c", _WHEELS], say, log)
        shutil.move(builder / "build/wheels", unfinished)
    return target


def links(programs: tuple[str, ...]) -> Iterator[tuple[tarfile.TarInfo, io.BytesIO | None]]:
    """Links in /usr/bin to programs of the environment."""
    for name in programs:
        link = tarfile.TarInfo(f"usr/bin/{name}")
        link.type, link.linkname, link.mode = tarfile.SYMTYPE, f"{PREFIX}/bin/{name}", 0o777
        yield link, None


def check_programs(tar: Path, programs: tuple[str, ...]) -> None:
    """Raises ImageError when the environment lacks one of the programs."""
    with tarfile.open(tar) as archive:
        there = set(archive.getnames())
    missing = [name for name in programs if f"{PREFIX.strip('/')}/bin/{name}" not in there]
    if missing:
        raise ImageError(f"the project's wheel has no {', '.join(missing)} (pyproject.toml, project.scripts)")


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = "root"
    return info
