"""Where the launchers of this node are spoken to (``pkg/virt-handler/cmd-client/client.go:140-260``).

The folder of a socket belongs to the pod: nothing in it is followed out of it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from kvnode.agent.errors import AgentError, SeveralLaunchersError
from kvnode.agent.vmi import Vmi, key_of, status, uid_of

SOCKET, MARKER = "launcher-sock", "launcher-unresponsive"

_FOLDER = "volumes/kubernetes.io~empty-dir/sockets"


class Pods(Protocol):
    """What is known of pods on this node."""

    def is_leaving(self, uid: str) -> bool:
        """Whether the pod was told to go, has ended, or is not there any more."""

    def owner(self, uid: str) -> str:
        """UID of the VMI that the pod is of; "" when nothing says so."""


class Sockets:
    """Sockets below kubelet's folder of pods."""

    def __init__(self, pods_folder: Path, node: str, pods: Pods) -> None:
        """`pods_folder` is ``/var/lib/kubelet/pods`` as this process sees it."""
        self._root = pods_folder
        self._node = node
        self._pods = pods

    def folder_of(self, pod_uid: str) -> Path:
        """Folder of a pod's sockets; raises AgentError for what is no UID."""
        if pod_uid in ("", ".", "..") or "/" in pod_uid or "\0" in pod_uid:
            raise AgentError(f"status.activePods: {pod_uid!r} is no UID of a pod")
        return self._root / pod_uid / _FOLDER

    def find(self, vmi: Vmi) -> Path | None:
        """The socket of the VMI's launcher on this node; None while there is none.

        Of several the one counts whose pod is the VMI's and is not leaving.

        Raises:
            SeveralLaunchersError: more than one pod could be the VMI's.
            AgentError: a pod's UID is none.
        """
        found = [pod for pod in self._local_pods(vmi) if is_socket(self.folder_of(pod) / SOCKET)]
        if len(found) > 1:
            staying = [pod for pod in found if not self._pods.is_leaving(pod)]
            # A pod that was made by hand may be nobody's.
            mine = [[pod for pod in staying if self._pods.owner(pod) == uid] for uid in (uid_of(vmi), "")]
            found = mine[0] or mine[1] or found
        if len(found) > 1:
            names = ", ".join(sorted(found))
            raise SeveralLaunchersError(
                f"{key_of(vmi)}: launchers of {len(found)} pods answer for one VM: {names}"
            )
        return self.folder_of(found[0]) / SOCKET if found else None

    def has_folder(self, vmi: Vmi) -> bool:
        """Whether one of the VMI's pods has been on this node, and kubelet has not removed it."""
        pods: Mapping[str, str] = status(vmi).get("activePods") or {}
        return any(_mode(self.folder_of(pod)) is not None for pod in pods)

    def _local_pods(self, vmi: Vmi) -> list[str]:
        pods: Mapping[str, str] = status(vmi).get("activePods") or {}
        return [pod for pod, node in pods.items() if node == self._node]


def is_unresponsive(socket: Path) -> bool:
    """Whether a launcher that was there is not any more: no folder, no socket, or marked by the watchdog."""
    return _mode(socket.with_name(MARKER)) is not None or not is_socket(socket)


def mark_unresponsive(socket: Path) -> None:
    """Mark a launcher as one that does not answer. One whose folder is gone needs no mark.

    Raises:
        AgentError: the mark cannot be made.
    """
    # The launcher writes into this folder too: a link of its making must not be followed.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    try:
        os.close(os.open(socket.with_name(MARKER), flags, 0o644))
    except (FileExistsError, FileNotFoundError):
        return
    except OSError as error:
        raise AgentError(f"{socket}: cannot be marked as unresponsive: {error.strerror}") from error


class Pinned:
    """A socket that stays the same one, whatever its folder's owner puts into its place.

    connect(2) follows links: between a look at a path and the call, a launcher could lead it to another's socket.
    """

    def __init__(self, path: Path) -> None:
        """Hold the socket at ``path``.

        Raises:
            AgentError: it is none, or a link to one.
        """
        try:
            self._file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise AgentError(f"{path}: {error.strerror}") from error
        found = os.fstat(self._file)
        if not stat.S_ISSOCK(found.st_mode):
            os.close(self._file)
            raise AgentError(f"{path}: is no socket")
        self._name = path
        self._identity = (found.st_dev, found.st_ino)

    @property
    def path(self) -> Path:
        """By this path the very socket is reached that is held."""
        return Path(f"/proc/self/fd/{self._file}")

    def was_replaced(self) -> bool:
        """Whether another socket is in its place now."""
        try:
            found = self._name.lstat()
        except OSError:
            return False
        return stat.S_ISSOCK(found.st_mode) and (found.st_dev, found.st_ino) != self._identity

    def close(self) -> None:
        """Let it go."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Pinned:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def is_socket(path: Path) -> bool:
    """Whether the path itself is a socket, not a link to one."""
    mode = _mode(path)
    return mode is not None and stat.S_ISSOCK(mode)


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
