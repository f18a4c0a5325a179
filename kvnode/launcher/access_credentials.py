"""SSH keys and passwords out of the pod's secrets, into the guest by way of its agent, and again when they change
(``pkg/virt-launcher/virtwrap/access-credentials/access_credentials.go``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import libvirt
import libvirt_qemu

from kvnode.launcher import guest_files, paths
from kvnode.launcher.agent_poller import AgentPoller
from kvnode.launcher.guest_files import GuestFileError
from kvnode.launcher.log import logger
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.virt.connection import Connection
from kvnode.virt.errors import VirtError

#: Seconds between looks at the secrets, and after which they are put in again, changed or not.
LOOK_SECONDS, RESYNC_SECONDS = 15.0, 300.0
#: Largest file of a secret that is read, in bytes: a secret has at most 1 MiB.
MOST_BYTES = 1 << 20


@dataclass
class Credentials:
    """What belongs into the guest."""

    keys: dict[str, list[str]] = field(default_factory=dict)
    """User to the lines of ``authorized_keys``."""

    passwords: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """What could not be read."""


def credential_directories(vmi: Mapping[str, Any], secrets: Path = paths.SECRETS) -> list[Path]:
    """The directories of the secrets that the guest agent is to put in."""
    return [secrets / f"{secret}-access-cred" for _, secret, _ in _by_agent(vmi)]


def read_credentials(vmi: Mapping[str, Any], secrets: Path = paths.SECRETS) -> Credentials:
    """Read all secrets; of two passwords for one user the later counts."""
    found = Credentials()
    for kind, secret, method in _by_agent(vmi):
        directory = secrets / f"{secret}-access-cred"
        try:
            files = {file.name: _text(file) for file in sorted(directory.iterdir()) if _holds_data(file)}
        except OSError as error:
            found.problems.append(f"secret {secret}: cannot be read from {directory}: {error.strerror}")
            continue
        if kind == "userPassword":
            found.passwords |= {user: text.strip() for user, text in files.items() if text.strip()}
            continue
        keys = [line.strip() for text in files.values() for line in text.split("\n") if line.strip()]
        for user in method.get("users") or []:
            found.keys.setdefault(user, []).extend(keys)
    return found


def _by_agent(vmi: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Kind, secret and settings of each credential that goes by way of the guest agent."""
    for credential in vmi["spec"].get("accessCredentials") or []:
        for kind in ("sshPublicKey", "userPassword"):
            wanted = credential.get(kind) or {}
            method = (wanted.get("propagationMethod") or {}).get("qemuGuestAgent")
            if method is not None:
                secret = ((wanted.get("source") or {}).get("secret") or {}).get("secretName")
                if secret:
                    yield kind, secret, method
                break


def _holds_data(file: Path) -> bool:
    """Kubernetes swaps the files of a secret by links in names that begin with two dots."""
    return not file.name.startswith("..") and file.is_file()


def _text(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES).decode(errors="replace")


class AccessCredentials:
    """Keeps one guest's credentials."""

    def __init__(
        self,
        connection: Connection,
        domain: str,
        poller: AgentPoller,
        metadata: MetadataCache,
        secrets: Path = paths.SECRETS,
    ) -> None:
        """Prepare; how it went is written to the metadata's ``AccessCredential``."""
        self._connection = connection
        self._domain = domain
        self._poller = poller
        self._metadata = metadata
        self._secrets = secrets
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, vmi: Mapping[str, Any]) -> None:
        """Begin with a VMI's credentials; nothing when it has none for the agent, or when that has begun."""
        if self._task is None and credential_directories(vmi, self._secrets):
            self._task = asyncio.get_running_loop().create_task(self._keep(vmi), name="access-credentials")

    def wake(self) -> None:
        """Look at once: the guest agent has come."""
        self._wake.set()

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _keep(self, vmi: Mapping[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        put_in: Credentials | None = None
        due = loop.time()
        while True:
            wanted = await self._poller.ask(read_credentials, vmi, self._secrets)
            if wanted != put_in or loop.time() >= due:
                done = await self._put_in(wanted)
                put_in = wanted if done else None
                due = loop.time() + RESYNC_SECONDS
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_SECONDS)
            if self._wake.is_set():
                self._wake.clear()
                put_in = None

    async def _put_in(self, wanted: Credentials) -> bool:
        """Put all in; False when some of it has to be tried again."""
        try:
            problems = await self._poller.ask(self._put_in_thread, wanted)
        except (VirtError, libvirt.libvirtError) as error:
            logger.debug("the guest agent does not answer: %s", error)
            problems = ["the guest agent is offline"]
        self._metadata.update("AccessCredential", Succeeded=not problems, Message="; ".join(problems))
        for problem in problems:
            logger.warning("access credentials: %s", problem)
        return not problems

    def _put_in_thread(self, wanted: Credentials) -> list[str]:
        domain = self._connection.raw.lookupByName(self._domain)
        libvirt_qemu.qemuAgentCommand(
            domain, '{"execute":"guest-ping"}', libvirt_qemu.VIR_DOMAIN_QEMU_AGENT_COMMAND_DEFAULT, 0
        )
        problems = list(wanted.problems)
        for user, keys in wanted.keys.items():
            problems += _tried(f"SSH keys of user {user}", partial(set_keys, domain, user, keys))
        for user, password in wanted.passwords.items():
            problems += _tried(f"password of user {user}", partial(domain.setUserPassword, user, password, 0))
        return problems


def _tried(what: str, action: Callable[[], Any]) -> list[str]:
    """Do it; one line when it fails."""
    try:
        action()
    except (libvirt.libvirtError, GuestFileError) as error:
        return [f"{what}: {' '.join(str(error).split())}"]
    return []


def set_keys(domain: libvirt.virDomain, user: str, keys: list[str]) -> None:
    """Make these a user's SSH keys: by the agent's own command, or else as a file. Blocks.

    Raises libvirtError or GuestFileError when neither works.
    """
    try:
        domain.authorizedSSHKeysSet(user, keys, 0)
    except libvirt.libvirtError as error:
        logger.debug("the agent has no command for SSH keys: %s", error)
        home, owner = guest_files.home_of(domain, user)
        path = f"{home}/.ssh/authorized_keys"
        wanted = "\n".join(keys)
        there = guest_files.read_file(domain, path)
        if there != wanted:
            guest_files.write_file(domain, path, wanted, owner, exists=there is not None)
