"""A writer of cpio archives in the "newc" form, the one that the kernel unpacks as its first file system.

The layout is that of the kernel's Documentation/driver-api/early-userspace/buffer-format.rst. Times and
owners are all zero and inodes count up, so that the same entries give the same bytes.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Entry:
    """One file, directory, link or device.

    Attributes:
        path: where it goes, without a leading slash.
        mode: type and permission bits, as in st_mode.
        data: a file's content or a link's target.
        device: major and minor number of a device node.
    """

    path: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


class Archive:
    """Collects entries, adding the directories above each; ``to_bytes`` writes them in the order of
    arrival.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def directory(self, path: str) -> None:
        """Add a directory and those above it, unless they are there."""
        for parent in [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]:
            name = str(parent)
            if name != ".":
                self._entries.setdefault(name, Entry(name, stat.S_IFDIR | 0o755))

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Add a regular file.

        Raises:
            ValueError: something is there already.
        """
        self._add(Entry(path, stat.S_IFREG | mode, data))

    def device(self, path: str, major: int, minor: int) -> None:
        """Add a character device."""
        self._add(Entry(path, stat.S_IFCHR | 0o600, device=(major, minor)))

    def _add(self, entry: Entry) -> None:
        if entry.path in self._entries:
            raise ValueError(f"{entry.path} is in the archive twice")
        self.directory(str(PurePosixPath(entry.path).parent))
        self._entries[entry.path] = entry

    def to_bytes(self) -> bytes:
        """The archive, padded and closed by its trailer."""
        return write(self._entries.values())


def write(entries: Iterable[Entry]) -> bytes:
    """The bytes of an archive that holds these entries."""
    out = bytearray()
    for inode, entry in enumerate([*entries, Entry("TRAILER!!!", 0)], start=1):
        name = entry.path.encode() + b"\0"
        major, minor = entry.device
        fields = (inode, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0, major, minor, len(name), 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out += b"\0" * (-len(out) % 4)
        out += entry.data
        out += b"\0" * (-len(out) % 4)
    return bytes(out)
