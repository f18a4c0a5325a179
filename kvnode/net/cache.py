"""What the agent remembers of a pod's network, in files (``pkg/network/cache``).

Of each network, in a folder of the VMI's own: the interface, the addresses that the pod has, and how far the set-up
has come. And in the launcher's root: what its DHCP server hands on of the pod's addresses.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from kvnode.net import inroot
from kvnode.net.errors import NetError
from kvnode.net.lease import BridgeLease, to_json

PRIVATE = PurePosixPath("var/run/kubevirt-private")
_FOLDER = "network-info-cache"
_MODE = 0o604
_OWNER = 107

_INTERFACE_FIELDS = (
    *(
        "name",
        "model",
        "bridge",
        "slirp",
        "masquerade",
        "sriov",
        "macvtap",
        "passt",
        "passtBinding",
        "binding",
    ),
    *(
        "ports",
        "portRanges",
        "macAddress",
        "bootOrder",
        "pciAddress",
        "dhcpOptions",
        "tag",
        "acpiIndex",
        "state",
    ),
)


class Progress(IntEnum):
    """How far the set-up of a network has come."""

    PENDING = 0
    STARTED = 1
    FINISHED = 2


@dataclass(frozen=True)
class PodInterface:
    """What is remembered of a network."""

    interface: Mapping[str, Any] | None = None
    addresses: tuple[str, ...] = ()
    """The pod's, the preferred one first."""
    progress: Progress = Progress.PENDING


@dataclass
class Cache:
    """The files of one VMI; methods raise NetError."""

    private: Path
    """The agent's ``/var/run/kubevirt-private``."""
    uid: str
    launcher_root: Path
    """``/proc/<pid>/root`` of the launcher."""
    owner: int = _OWNER
    """User and group of the files: who reads them."""

    def read(self, network: str) -> PodInterface | None:
        """What is remembered of a network; None when nothing is."""
        path = self._path(network)
        try:
            data = json.loads(path.read_bytes())
            return PodInterface(
                interface=data.get("iface"),
                addresses=tuple(map(str, data.get("podIPs") or ())),
                progress=Progress(data.get("networkState") or 0),
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NetError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, AttributeError, TypeError):
            raise NetError(f"{path}: is no record of a network") from None

    def write(self, network: str, found: PodInterface) -> None:
        """Remember a network."""
        data: dict[str, Any] = {}
        if found.interface is not None:
            data["iface"] = _ordered(found.interface)
        if found.addresses:
            data["podIP"] = found.addresses[0]
            data["podIPs"] = list(found.addresses)
        if found.progress:
            data["networkState"] = int(found.progress)
        path = self._path(network)
        try:
            self.private.mkdir(mode=0o750, parents=True, exist_ok=True)
            inside = PurePosixPath(*path.relative_to(self.private).parts)
            inroot.write(self.private, inside, to_json(data), mode=_MODE, owner=self.owner)
        except OSError as error:
            raise NetError(f"{path}: cannot be written: {error.strerror}") from None

    def remove(self, network: str) -> None:
        """Forget a network."""
        path = self._path(network)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise NetError(f"{path}: cannot be removed: {error.strerror}") from None

    def remove_all(self) -> None:
        """Forget the VMI."""
        folder = self._folder()
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise NetError(f"{folder}: cannot be removed: {error.strerror}") from None

    def write_lease(self, pod_interface: str, lease: BridgeLease) -> None:
        """Leave in the launcher's root what its DHCP server of a bridge is to say."""
        name = self._lease(pod_interface)
        try:
            inroot.write(self.launcher_root, name, lease.to_bytes(), mode=_MODE, owner=self.owner)
        except OSError as error:
            raise NetError(f"the launcher's /{name}: cannot be written: {error.strerror}") from None

    def remove_lease(self, pod_interface: str) -> None:
        """Take it away."""
        name = self._lease(pod_interface)
        try:
            inroot.remove(self.launcher_root, name)
        except OSError as error:
            raise NetError(f"the launcher's /{name}: cannot be removed: {error.strerror}") from None

    @staticmethod
    def _lease(pod_interface: str) -> PurePosixPath:
        return PRIVATE / f"vif-cache-{_plain(pod_interface)}.json"

    def _folder(self) -> Path:
        return self.private / _FOLDER / _plain(self.uid)

    def _path(self, network: str) -> Path:
        return self._folder() / _plain(network)


class Progresses(Protocol):
    """How far the networks of one VMI are; methods raise NetError."""

    def get(self, network: str) -> Progress:
        """How far a network is."""

    def put(self, network: str, progress: Progress) -> None:
        """Remember it."""

    def drop(self, network: str) -> None:
        """Forget it."""


@dataclass
class RecordedProgresses:
    """Progress as the files have it, which outlives the agent; what was read once is not read again."""

    cache: Cache
    _known: dict[str, Progress] = field(default_factory=dict)
    _unwritten: set[str] = field(default_factory=set)
    """Networks that are set up, of which the files do not say so yet."""

    def get(self, network: str) -> Progress:
        """Look it up, in the file the first time; one that could not be written before is written first."""
        if network in self._unwritten:
            self.put(network, Progress.FINISHED)
        if network not in self._known:
            found = self.cache.read(network)
            self._known[network] = Progress.PENDING if found is None else found.progress
        return self._known[network]

    def put(self, network: str, progress: Progress) -> None:
        """Write it into the file. That a network is finished is remembered also when it cannot be written."""
        if progress is Progress.FINISHED:
            self._unwritten.add(network)
        found = self.cache.read(network) or PodInterface()
        self.cache.write(network, replace(found, progress=progress))
        self._known[network] = progress
        self._unwritten.discard(network)

    def drop(self, network: str) -> None:
        """Forget it; a file that is still there says so too, or goes where that cannot be written."""
        self._known.pop(network, None)
        self._unwritten.discard(network)
        found = self.cache.read(network)
        if found is None or found.progress is Progress.PENDING:
            return
        try:
            self.cache.write(network, replace(found, progress=Progress.PENDING))
        except NetError:
            self.cache.remove(network)


def _plain(name: str) -> str:
    if not name or "/" in name or "\0" in name or name in {os.curdir, os.pardir}:
        raise NetError(f"{name!r}: cannot be a file's name; a UID or a network's name is expected")
    return name


def _ordered(interface: Mapping[str, Any]) -> dict[str, Any]:
    """The fields in the order in which the API's types have them; others are none of its."""
    return {name: interface[name] for name in _INTERFACE_FIELDS if interface.get(name) is not None}
