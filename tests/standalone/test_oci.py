"""Files out of OCI layouts, and all the ways in which an image may try to be clever."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import posixpath
import tarfile
from pathlib import Path
from typing import Any

import pytest

from kvnode.standalone.oci import OciError, OciImage, is_layout


def entry(
    name: str, content: bytes | None = None, *, kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[Any, bytes]:
    """A member of a layer."""
    member = tarfile.TarInfo(name)
    member.type = tarfile.DIRTYPE if content is None and kind == tarfile.REGTYPE else kind
    member.linkname = link
    member.size = len(content or b"")
    return member, content or b""


def layer(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A layer as a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member, content in entries:
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


class Layout:
    """An OCI layout under construction."""

    def __init__(self, path: Path) -> None:
        """Start an empty layout at ``path``."""
        self.path = path
        (path / "blobs/sha256").mkdir(parents=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def blob(self, content: bytes, media_type: str, **more: Any) -> dict[str, Any]:
        """Store a blob and return its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        (self.path / "blobs/sha256" / digest).write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content), **more}

    def document(self, content: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Store a JSON document and return its descriptor."""
        return self.blob(json.dumps(content).encode(), "application/vnd.oci.image.manifest.v1+json", **more)

    def image(self, *layers: bytes, suffix: str = "tar", **more: Any) -> dict[str, Any]:
        """Store an image and return its manifest's descriptor."""
        media_type = f"application/vnd.oci.image.layer.v1.{suffix}"
        return self.document({"layers": [self.blob(content, media_type) for content in layers]}, **more)

    def index(self, *manifests: dict[str, Any]) -> OciImage:
        """Write the index and open the layout for amd64."""
        (self.path / "index.json").write_text(json.dumps({"manifests": list(manifests)}))
        return OciImage(self.path, "amd64")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """An empty layout."""
    return Layout(tmp_path / "layout")


def content(image: OciImage, path: str) -> bytes:
    """A file's content as it is taken out."""
    buffer = io.BytesIO()
    image.copy(path, buffer)
    return buffer.getvalue()


DISK = entry("disk/disk.img", b"a disk")


def test_the_only_file_in_a_directory(layout: Layout) -> None:
    image = layout.index(layout.image(layer(entry("disk"), DISK, entry("etc/passwd", b"x"))))
    assert image.file_in("/disk") == "/disk/disk.img"
    assert content(image, "/disk/disk.img") == b"a disk"
    assert image.size("disk/disk.img") == 6


@pytest.mark.parametrize("suffix", ["tar+gzip", "tar.gzip"])
def test_compressed_layers(layout: Layout, suffix: str) -> None:
    image = layout.index(layout.image(gzip.compress(layer(DISK)), suffix=suffix))
    assert content(image, image.file_in("/disk")) == b"a disk"


def test_runs_of_zeros_become_holes(layout: Layout, tmp_path: Path) -> None:
    disk = b"\1" + bytes((4 << 20) - 1) + b"\2" + bytes(2 << 20)
    image = layout.index(layout.image(layer(entry("disk/d", disk))))
    target = tmp_path / "out"
    with target.open("wb") as file:
        image.copy("/disk/d", file)
    assert target.read_bytes() == disk
    assert target.stat().st_blocks * 512 < len(disk) / 2


def test_a_later_layer_replaces_and_takes_away(layout: Layout) -> None:
    below = layer(DISK, entry("disk/old.img", b"old"), entry("gone/a", b"a"), entry("gone/b", b"b"))
    above = layer(
        entry("disk/.wh.old.img", b""),
        entry("disk/disk.img", b"newer"),
        entry("gone/.wh..wh..opq", b""),
        entry("gone/c", b"c"),
    )
    image = layout.index(layout.image(below, above))
    assert content(image, image.file_in("/disk")) == b"newer"
    assert image.file_in("/gone") == "/gone/c"


def test_none_or_several_files_need_a_path(layout: Layout) -> None:
    image = layout.index(layout.image(layer(DISK, entry("disk/second.img", b""), entry("empty"))))
    with pytest.raises(OciError, match="2 files in /disk"):
        image.file_in("/disk")
    with pytest.raises(OciError, match="no file in /empty"):
        image.file_in("/empty")
    assert content(image, "/disk/disk.img") == b"a disk"


def test_links_are_followed_inside_the_image_only(layout: Layout) -> None:
    image = layout.index(
        layout.image(
            layer(
                DISK,
                entry("relative", kind=tarfile.SYMTYPE, link="disk/disk.img"),
                entry("disk/up", kind=tarfile.SYMTYPE, link="../disk/disk.img"),
                entry("absolute", kind=tarfile.SYMTYPE, link="/disk"),
                entry("hard", kind=tarfile.LNKTYPE, link="disk/disk.img"),
                entry("out", kind=tarfile.SYMTYPE, link="../../../../etc/passwd"),
                entry("host", kind=tarfile.SYMTYPE, link="/etc/passwd"),
                entry("round", kind=tarfile.SYMTYPE, link="round"),
            )
        )
    )
    for path in ("relative", "disk/up", "absolute/disk.img", "hard"):
        assert content(image, path) == b"a disk", path
    for path in ("out", "host", "../../../../etc/passwd", "/etc/passwd"):
        with pytest.raises(OciError, match="is not in the image"):
            content(image, path)
    with pytest.raises(OciError, match="loop of links"):
        content(image, "round")


@pytest.mark.parametrize("name", ["../../escape", "/absolute/escape", "disk/../../escape"])
def test_names_that_lead_out_stay_inside(layout: Layout, name: str, tmp_path: Path) -> None:
    image = layout.index(layout.image(layer(entry(name, b"evil"))))
    assert content(image, posixpath.normpath(f"/{name}")) == b"evil"
    assert not (tmp_path / "escape").exists()
    assert not list(tmp_path.rglob("escape"))


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_devices_and_pipes_are_no_files(layout: Layout, kind: bytes) -> None:
    image = layout.index(layout.image(layer(entry("disk/disk.img", kind=kind))))
    with pytest.raises(OciError, match="no file in /disk"):
        image.file_in("/disk")


def test_the_image_of_this_architecture_is_taken(layout: Layout) -> None:
    arm = layout.image(layer(entry("disk/d", b"arm")), platform={"architecture": "arm64", "os": "linux"})
    amd = layout.image(layer(entry("disk/d", b"amd")), platform={"architecture": "amd64", "os": "linux"})
    inner = layout.document({"manifests": [arm, amd]})
    assert content(layout.index(inner), "/disk/d") == b"amd"
    with pytest.raises(OciError, match="no image for amd64"):
        layout.index(arm)


def test_damage_is_found(layout: Layout) -> None:
    manifest = layout.image(layer(DISK))
    for blob in (layout.path / "blobs/sha256").iterdir():
        if blob.stat().st_size > 1000:
            blob.write_bytes(blob.read_bytes().replace(b"a disk", b"b disk"))
    with pytest.raises(OciError, match="layer 0 is damaged"):
        layout.index(manifest).file_in("/disk")


@pytest.mark.parametrize(
    ("descriptor", "complaint"),
    [
        ({"digest": "sha256:../../../etc/passwd"}, "is no digest"),
        ({"digest": "md5:" + "0" * 32}, "is no digest"),
        ({"digest": "sha256:" + "0" * 64}, "No such file"),
        ({"digest": 7}, "is no digest"),
        ({}, "is no digest"),
    ],
)
def test_digests_are_digests(layout: Layout, descriptor: dict[str, Any], complaint: str) -> None:
    with pytest.raises(OciError, match=complaint):
        layout.index(descriptor)


@pytest.mark.parametrize("index", ["", "[]", "null", '{"manifests": 3}', '{"layers": 1}', "[" * 100_000])
def test_indexes_that_are_none(layout: Layout, index: str) -> None:
    (layout.path / "index.json").write_text(index)
    with pytest.raises(OciError):
        OciImage(layout.path, "amd64")


def test_layers_that_cannot_be_read(layout: Layout) -> None:
    with pytest.raises(OciError, match="layer 0 cannot be read"):
        layout.index(layout.image(b"no tar at all" * 100)).file_in("/disk")
    with pytest.raises(OciError, match="layer 0 cannot be read"):
        layout.index(layout.image(gzip.compress(layer(DISK))[:60], suffix="tar+gzip")).file_in("/disk")
    with pytest.raises(OciError, match="zstd"):
        layout.index(layout.image(b"", suffix="tar+zstd")).file_in("/disk")


def test_the_key_follows_content_and_path(layout: Layout) -> None:
    first = layout.index(layout.image(layer(DISK)))
    second = layout.index(layout.image(layer(entry("disk/disk.img", b"other!"))))
    assert first.key("/disk/a") != first.key("/disk/b")
    assert first.key("/disk/a") != second.key("/disk/a")


def test_a_layout_is_known_by_its_files(layout: Layout, tmp_path: Path) -> None:
    assert is_layout(layout.path)
    assert not is_layout(tmp_path)
