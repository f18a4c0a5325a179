"""Take one file out of a container image in a local OCI layout directory.

Nothing but the wanted file's content is ever written, under a name of our own: member names, links and modes
of the image's layers decide which content that is, and no more. So no path can lead out of anywhere. The
layers are merged as a container runtime does: later layers replace, ``.wh.`` entries take away, links are
followed inside the image.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_ALGORITHMS = {"sha256": 64, "sha512": 128}
_GZIP = ("tar+gzip", "tar.gzip")
_LARGEST_DOCUMENT = 4 << 20
_MOST_MEMBERS = 1_000_000
_MOST_LINKS = 40
_CHUNK = 1 << 20


class OciError(Exception):
    """The layout or the image in it is not as it should be; one line."""


@dataclass(frozen=True)
class _Entry:
    """A path of the merged image: where its content is, or where it leads."""

    layer: int
    member: str
    kind: str
    """``file``, ``directory`` or ``symlink``."""

    target: str
    size: int


def is_layout(path: Path) -> bool:
    """Tell whether a directory is an OCI layout."""
    return (path / "oci-layout").is_file() or (path / "index.json").is_file()


class OciImage:
    """The image of a layout, for one architecture."""

    def __init__(self, layout: Path, architecture: str) -> None:
        """Read index and manifest; raises OciError."""
        self._layout = layout
        manifest = self._manifest(architecture)
        layers = manifest.get("layers")
        if not isinstance(layers, list) or not all(isinstance(layer, dict) for layer in layers):
            raise OciError("the image's manifest has no list of layers")
        self._layers: list[Mapping[str, Any]] = layers
        self._paths: dict[str, _Entry] = {}
        self._read = False

    def file_in(self, directory: str) -> str:
        """Return the path of the only file in a directory; raises OciError when there is none or several."""
        self._merge()
        root = _normal(directory)
        names = [path for path in self._paths if posixpath.dirname(path) == root and path != root]
        if len(names) != 1:
            found = "no file" if not names else f"{len(names)} files"
            raise OciError(
                f"{found} in {directory} of the image: there must be exactly one, or a path be given"
            )
        return "/" + names[0]

    def key(self, path: str) -> str:
        """Return a name for a file's content that changes whenever the content may."""
        digests = "".join(str(layer.get("digest")) for layer in self._layers)
        return hashlib.sha256(f"{digests}\0{path}".encode()).hexdigest()

    def size(self, path: str) -> int:
        """Return a file's size in bytes; raises OciError when it is not in the image."""
        return self._find(path).size

    def copy(self, path: str, to: IO[bytes]) -> None:
        """Write a file's content to ``to``, sparse; raises OciError."""
        entry = self._find(path)
        with self._open_layer(entry.layer) as archive:
            for member in archive:
                if _normal(member.name) == entry.member and member.isfile():
                    source = archive.extractfile(member)
                    if source is not None:
                        _copy_sparse(source, to)
                        return
        raise OciError(f"{path} went out of the image while it was read")

    def _find(self, path: str) -> _Entry:
        """Return the file at ``path``, following links inside the image."""
        self._merge()
        todo = [part for part in path.split("/") if part]
        at: list[str] = []
        links = 0
        while todo:
            part = todo.pop(0)
            if part in {".", ".."}:
                at = at[:-1] if part == ".." else at
                continue
            entry = self._paths.get("/".join([*at, part]))
            if entry is None:
                raise OciError(f"{path} is not in the image")
            if entry.kind != "symlink":
                at.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OciError(f"{path} is a loop of links")
            if entry.target.startswith("/"):
                at = []
            todo = [p for p in entry.target.split("/") if p] + todo
        entry = self._paths.get("/".join(at))
        if entry is None or entry.kind != "file":
            raise OciError(f"{path} is no file in the image")
        return entry

    def _merge(self) -> None:
        """Read the names in all layers, the lowest first, once."""
        if self._read:
            return
        count = 0
        for number in range(len(self._layers)):
            with self._open_layer(number) as archive:
                here: dict[str, _Entry] = {}
                for member in archive:
                    count += 1
                    if count > _MOST_MEMBERS:
                        raise OciError(f"the image has more than {_MOST_MEMBERS} files")
                    self._take(number, member, here)
                self._paths.update(here)
        self._read = True

    def _take(self, number: int, member: tarfile.TarInfo, here: dict[str, _Entry]) -> None:
        """Take one member of a layer into ``here``, or what it removes out of the layers below."""
        name = _normal(member.name)
        directory, base = posixpath.split(name)
        if base == ".wh..wh..opq":
            self._remove_below(directory)
            return
        if base.startswith(".wh."):
            doomed = posixpath.join(directory, base[len(".wh.") :])
            self._paths.pop(doomed, None)
            self._remove_below(doomed)
            return
        parent = directory
        while parent and parent not in here and parent not in self._paths:  # archives may leave them out
            here[parent] = _Entry(number, parent, "directory", "", 0)
            parent = posixpath.dirname(parent)
        if member.isdir():
            here[name] = _Entry(number, name, "directory", "", 0)
        elif member.issym():
            here[name] = _Entry(number, name, "symlink", member.linkname, 0)
        elif member.islnk():
            target = _normal(member.linkname)
            linked = here.get(target) or self._paths.get(target)
            if linked is not None:
                here[name] = linked
        elif member.isfile():
            here[name] = _Entry(number, name, "file", "", member.size)

    def _remove_below(self, directory: str) -> None:
        prefix = f"{directory}/" if directory else ""
        for path in [path for path in self._paths if path.startswith(prefix)]:
            del self._paths[path]

    def _manifest(self, architecture: str) -> Mapping[str, Any]:
        document = self._document((self._layout / "index.json"), None)
        for _ in range(4):  # an index may list indexes
            if "manifests" not in document:
                return document
            document = self._document(*self._blob(_choose(document["manifests"], architecture)))
        raise OciError("indexes are nested too deep")

    def _document(self, path: Path, digest: str | None) -> Mapping[str, Any]:
        try:
            with path.open("rb") as file:
                raw = file.read(_LARGEST_DOCUMENT + 1)
        except OSError as error:
            raise OciError(f"{path.name}: {error.strerror}") from None
        if digest is not None:
            algorithm, _, wanted = digest.partition(":")
            if hashlib.new(algorithm, raw).hexdigest() != wanted:
                raise OciError(f"{path.name} is damaged: its digest does not agree")
        try:
            document = json.loads(raw)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise OciError(f"{path.name} is not a JSON object")
        return document

    def _blob(self, descriptor: Mapping[str, Any]) -> tuple[Path, str]:
        """Return path and digest of a blob; the digest's form is checked, so that it is no path of any other
        kind.
        """
        digest = descriptor.get("digest")
        algorithm, _, value = digest.partition(":") if isinstance(digest, str) else ("", "", "")
        if len(value) != _ALGORITHMS.get(algorithm) or not all(c in "0123456789abcdef" for c in value):
            raise OciError(f"{digest!r:.80} is no digest")
        return self._layout / "blobs" / algorithm / value, f"{algorithm}:{value}"

    @contextmanager
    def _open_layer(self, number: int) -> Iterator[tarfile.TarFile]:
        layer = self._layers[number]
        path, digest = self._blob(layer)
        kind = str(layer.get("mediaType", ""))
        if kind.endswith("+zstd"):
            raise OciError(f"layer {number} is compressed with zstd, which cannot be read; gzip can")
        if not self._read:
            _verify(path, digest, number)
        try:
            with tarfile.open(path, "r|gz" if kind.endswith(_GZIP) else "r|") as archive:
                yield archive
        except (OSError, tarfile.TarError, EOFError) as error:
            raise OciError(f"layer {number} cannot be read: {error}") from None


def _choose(manifests: object, architecture: str) -> Mapping[str, Any]:
    """Return the descriptor for an architecture; one without a platform will do."""
    if not isinstance(manifests, list):
        raise OciError("the layout's index has no list of manifests")
    found = [entry for entry in manifests if isinstance(entry, dict)]
    for entry in found:
        platform = entry.get("platform")
        if not isinstance(platform, dict) or platform.get("architecture") in {architecture, None}:
            return entry
    raise OciError(f"the layout holds no image for {architecture}")


def _verify(path: Path, digest: str, number: int) -> None:
    algorithm, _, wanted = digest.partition(":")
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, algorithm).hexdigest()
    except OSError as error:
        raise OciError(f"layer {number}: {error.strerror}") from None
    if found != wanted:
        raise OciError(f"layer {number} is damaged: its digest does not agree")


def _normal(name: str) -> str:
    """Return a path inside the image without a leading slash; what would lead out of it stays at its root."""
    return posixpath.normpath("/" + name).lstrip("/")


def _copy_sparse(source: IO[bytes], to: IO[bytes]) -> None:
    end = 0
    while chunk := source.read(_CHUNK):
        end += len(chunk)
        if chunk.count(0) == len(chunk):
            to.seek(len(chunk), 1)
        else:
            to.write(chunk)
    to.truncate(end)
