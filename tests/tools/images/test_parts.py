"""Recipes, cache and namespaces; nothing is downloaded."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.standalone.helpers import wait_until
from tools.images import build, cache
from tools.images.__main__ import main
from tools.images.environment import REQUIREMENTS, copy_changed, sources
from tools.images.errors import ImageError
from tools.images.oci import write_archive
from tools.images.recipe import LAUNCHER_PROGRAMS, REGISTRY, SOURCE, recipes
from tools.images.run import run


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache.cache_directory()


def names_in(document: Any) -> set[str]:
    """All images that a manifest names."""
    match document:
        case {"image": str(name)}:
            return {name} | {other for value in document.values() for other in names_in(value)}
        case dict():
            return {name for value in document.values() for name in names_in(value)}
        case list():
            return {name for value in document for name in names_in(value)}
        case str() if document.startswith("--launcher-image="):
            return {document.partition("=")[2]}
    return set()


def test_what_is_deployed_is_what_is_built() -> None:
    built = {name.removeprefix(f"{REGISTRY}/") for recipe in recipes() for name in recipe.references}
    files = [*(SOURCE / "deploy").rglob("*.yaml"), *(SOURCE / "tests/e2e/manifests").glob("*.yaml")]
    named = {
        name
        for file in files
        for document in yaml.safe_load_all(file.read_text())
        for name in names_in(document)
        if isinstance(name, str)
    }
    assert named <= built
    assert {name.partition(":")[0] for name in named} == {
        *("kvnode/launcher", "kvnode/agent", "kvnode/controller", "kvnode/webhook", "kvnode/demo-guest")
    }


def test_kustomize_has_all_of_deploy() -> None:
    listed = yaml.safe_load((SOURCE / "deploy/kustomization.yaml").read_text())["resources"]
    there = {str(path.relative_to(SOURCE / "deploy")) for path in (SOURCE / "deploy").rglob("*.yaml")}
    assert set(listed) == there - {"kustomization.yaml"}
    assert listed[0] == "namespace.yaml"


def test_programs_are_the_project_s() -> None:
    scripts = re.findall(r"^(virt-[a-z-]+|kvnode) = ", (SOURCE / "pyproject.toml").read_text(), re.MULTILINE)
    assert set(LAUNCHER_PROGRAMS) == set(scripts)


def test_nothing_generated_is_a_source() -> None:
    found = {str(path.relative_to(SOURCE)) for path in sources()}
    assert {"kvnode/_fast/domain.pyx", "setup.py", "native/container-disk/container-disk.c"} <= found
    assert "kvnode/_fast/domain.cpp" not in found
    assert any(name.startswith("kvnode/_fast/core/") and name.endswith(".cpp") for name in found)
    assert all(not name.endswith(".so") for name in found)


def test_sources_that_stay_the_same_are_not_touched(tmp_path: Path) -> None:
    """Or the native core would be compiled for every change of a Python file."""
    setup, core = SOURCE / "setup.py", SOURCE / "kvnode/_fast/domain.pyx"
    copy_changed([setup, core], tmp_path)
    left = [tmp_path / "build/lib/x.so", tmp_path / "kvnode/_fast/domain.cpp"]
    gone = tmp_path / "kvnode/old.py"
    for path in (*left, gone):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    os.utime(tmp_path / "setup.py", (1, 1))
    (tmp_path / "kvnode/_fast/domain.pyx").write_text("another")
    copy_changed([setup, core], tmp_path)
    assert (tmp_path / "setup.py").stat().st_mtime == 1
    assert (tmp_path / "kvnode/_fast/domain.pyx").read_bytes() == core.read_bytes()
    assert all(path.exists() for path in left)
    assert not gone.exists()


@pytest.mark.parametrize("name", ["run.txt", "build.txt"])
def test_every_wheel_is_pinned_by_content(name: str) -> None:
    for line in (REQUIREMENTS / name).read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-z0-9_-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}", line)


def test_an_image_has_several_names(tmp_path: Path) -> None:
    root = tmp_path / "root.tar"
    with tarfile.open(root, "w"):
        pass
    digest = write_archive(root, tmp_path / "image.tar", ("a.test/x:1", "a.test/y:2"))
    with tarfile.open(tmp_path / "image.tar") as archive:
        index: dict[str, Any] = json.loads(archive.extractfile("index.json").read())  # type: ignore[union-attr]
    names = [one["annotations"]["io.containerd.image.name"] for one in index["manifests"]]
    assert names == ["a.test/x:1", "a.test/y:2"]
    assert {one["digest"] for one in index["manifests"]} == {digest}


def test_what_fails_leaves_nothing_in_the_cache(store: Path) -> None:
    target = store / "thing-1.tar"

    def fail() -> None:
        with cache.made(target) as unfinished:
            unfinished.write_text("half")
            raise ImageError("no more")

    with pytest.raises(ImageError):
        fail()
    assert list(store.iterdir()) == []
    assert not cache.used(target)


def test_the_newest_of_a_kind_stay(store: Path) -> None:
    for number in range(7):
        (store / f"root-a-{number}.tar").touch()
        os.utime(store / f"root-a-{number}.tar", (number, number))
    others = {"root-a-b-0.tar", "root-a-0.json"}
    for name in others:
        (store / name).touch()
        os.utime(store / name, (0, 0))
    assert cache.used(store / "root-a-1.tar"), "which makes it the newest"
    cache.prune(store / "root-a-6.tar")
    stay = {f"root-a-{number}.tar" for number in (1, *range(7 - cache.KEPT + 1, 7))}
    assert {path.name for path in store.iterdir()} == stay | others


def test_what_a_killed_build_left_is_cleared_away(store: Path) -> None:
    (store / "scratch-x").mkdir()
    (store / "scratch-x" / "root.tar").touch()
    with cache.locked(store, lambda _line: None):
        assert [path.name for path in store.iterdir()] == [".lock"]


def test_one_build_waits_for_another(store: Path) -> None:
    hold = "import sys; from pathlib import Path; from tools.images import cache\n"
    hold += "with cache.locked(Path(sys.argv[1]), print): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=SOURCE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        said: list[str] = []

        def say(line: str) -> None:
            said.append(line)
            assert other.stdin is not None
            other.stdin.close()  # it ends, and gives the lock away

        with cache.locked(store, say):
            assert said == ["another build of images is running: waiting for it"]


def test_what_cannot_be_built_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["laucher"]) == 1
    assert "there is no image laucher; there are: launcher, agent, demo-guest" in capsys.readouterr().err
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main([]) == 1
    assert "images: building images needs root" in capsys.readouterr().err
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(ImageError, match="missing Debian packages: mmdebstrap util-linux"):
        build.check()


@pytest.mark.integration
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
class TestCommands:
    """In namespaces of their own."""

    def test_the_end_of_what_failed_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(ImageError, match=r"thing failed:\n  no room"):
            run("thing", ["sh", "-c", "echo no room; exit 3"], print, tmp_path / "log", os.environ)

    def test_mounts_and_processes_end_with_the_build(self, tmp_path: Path) -> None:
        place = tmp_path / "place"
        place.mkdir()
        begin = f"mount -t tmpfs none {place}; touch {tmp_path}/begun; sleep 1000.25"
        code = "import os, sys; from pathlib import Path; from tools.images.run import run\n"
        code += "run('x', ['sh', '-c', sys.argv[1]], print, Path(sys.argv[2]), os.environ)"
        process = subprocess.Popen([sys.executable, "-c", code, begin, str(tmp_path / "log")], cwd=SOURCE)
        wait_until((tmp_path / "begun").exists, 120, "the command")
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: str(tmp_path) not in living(), 120, "the end of the command")
        assert str(place) not in Path("/proc/mounts").read_text()


def living() -> str:
    """The command lines of all processes but this one and its parents."""
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if "sleep 1000.25" in line:
                lines.append(line)
    return "\n".join(lines)
