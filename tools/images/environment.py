"""The virtual environment of the images, and container-disk: built inside the builder's root, as one tar."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterator, Sequence
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
rm -rf /build/new-wheels
/opt/build/bin/pip wheel --quiet --no-cache-dir --no-build-isolation --require-hashes --no-deps \\
  -r /build/run.txt -w /build/new-wheels
"""
# Containers cannot write byte code, so it is made here, and by content: times in the tar are all the same.
_BASE = """\
set -eu
rm -rf "$1" /build/base
python3 -m venv --without-pip "$1"
/opt/build/bin/pip --python "$1/bin/python" install --quiet --no-index --no-deps --no-compile /build/wheels/*.whl
"$1/bin/python" -m compileall -q --invalidation-mode unchecked-hash "$1/lib"
"""
# Of an earlier build the native core alone is taken over: setuptools looks whether its sources are newer.
_ENVIRONMENT = """\
set -eu
cd /build
find source/build -type f ! -name '*.so' ! -name '*.o' -delete 2>/dev/null || true
rm -rf project source/*.egg-info
/opt/build/bin/pip wheel --quiet --no-cache-dir --no-build-isolation --no-index --no-deps ./source -w project
/opt/build/bin/pip --python "$1/bin/python" install --quiet --no-index --no-deps --no-compile \\
  --force-reinstall project/*.whl
"$1/bin/python" -m compileall -q --invalidation-mode unchecked-hash "$1"/lib/python3*/site-packages/kvnode
gcc -std=c11 -D_GNU_SOURCE -Os -Wall -Wextra -Werror -static -ffunction-sections -Wl,--gc-sections -s \\
  -o container-disk source/native/container-disk/container-disk.c
"""


def sources() -> list[Path]:
    """What the project's wheel and container-disk are made of."""
    code = (path for path in (SOURCE / "kvnode").rglob("*") if path.suffix in _SUFFIXES)
    # Cython writes its C++ beside its sources.
    kept = [path for path in code if path.suffix != ".cpp" or path.parent.name == "core"]
    return sorted([*kept, *(SOURCE / name for name in (*_PROJECT, _NATIVE))])


def environment(builder: Path, cache: Path, say: Say, *, refresh: bool) -> Path:
    """A tar with ``PREFIX``, the virtual environment, and container-disk.

    Raises:
        ImageError: something does not build.
    """
    parts: list[str | bytes] = [builder.name, _BASE, _ENVIRONMENT]
    for path in sources():
        parts += [str(path.relative_to(SOURCE)), path.read_bytes()]
    parts += [path.read_bytes() for path in _requirements()]
    target = cache / f"environment-{key(*parts)}.tar"
    if used(target) and not refresh:
        return target
    with made(target) as unfinished:
        log = unfinished.parent / "log"
        work = builder / "build"
        work.mkdir(exist_ok=True)
        for path in _requirements():
            shutil.copy(path, work)
        _install_base(builder, _wheels(builder, cache, say, log), say, log)
        _forget_unless_alike(work)
        copy_changed(sources(), work / "source")
        say("environment: the project's wheel")
        run_inside(builder, "environment", ["bash", "-c", _ENVIRONMENT, "make", PREFIX], say, log)
        with tarfile.open(unfinished, "w") as out:
            out.add(builder / PREFIX.strip("/"), PREFIX.strip("/"), filter=_plain)
            out.add(work / "container-disk", CONTAINER_DISK, filter=_plain)
    return target


def copy_changed(paths: Sequence[Path], folder: Path) -> None:
    """Make ``folder`` hold these files of the checkout and no others, writing only those whose content changed.

    What was built there out of the others stays: everything below ``build``, and what Cython wrote.
    """
    wanted = {path.relative_to(SOURCE): path.read_bytes() for path in paths}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        built = name.parts[0] == "build" or path.with_suffix(".pyx").exists()
        if path.is_file() and name not in wanted and not built:
            path.unlink()
    for name, content in wanted.items():
        copy = folder / name
        if not copy.exists() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)


def _forget_unless_alike(work: Path) -> None:
    """Nothing of an earlier build is taken over from another way to build."""
    mark = work / "way"
    tools = [
        (work / "build.txt").read_bytes(),
        *((SOURCE / name).read_bytes() for name in ("setup.py", "pyproject.toml")),
    ]
    if not mark.exists() or mark.read_text() != key(*tools):
        store.remove(work / "source")
        mark.write_text(key(*tools))


def _install_base(builder: Path, wheels: Path, say: Say, log: Path) -> None:
    """See to it that the environment has the pinned wheels."""
    work = builder / "build"
    mark = work / "base"
    wanted = key(wheels.name, _BASE)
    if mark.exists() and mark.read_text() == wanted:
        return
    say("environment: the pinned wheels")
    store.remove(work / "wheels")
    shutil.copytree(wheels, work / "wheels")
    run_inside(builder, "environment", ["bash", "-c", _BASE, "make", PREFIX], say, log)
    mark.write_text(wanted)


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
        shutil.move(builder / "build/new-wheels", unfinished)
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
