"""SSH keys and passwords from secrets into a guest whose agent is played."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import libvirt_qemu
import pytest

from kvnode.launcher import access_credentials
from kvnode.launcher.access_credentials import AccessCredentials, credential_directories, read_credentials
from kvnode.launcher.agent_poller import AgentPoller
from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.virt.connection import Connection
from tests.virt.errors import libvirt_error


def ssh(secret: str, *users: str) -> dict[str, Any]:
    """Keys of a secret for some users."""
    method = {"qemuGuestAgent": {"users": list(users)}}
    return {"sshPublicKey": {"source": {"secret": {"secretName": secret}}, "propagationMethod": method}}


def password(secret: str) -> dict[str, Any]:
    """Passwords of a secret."""
    return {
        "userPassword": {
            "source": {"secret": {"secretName": secret}},
            "propagationMethod": {"qemuGuestAgent": {}},
        }
    }


def vmi(*credentials: dict[str, Any]) -> dict[str, Any]:
    """A VMI with these."""
    return {"metadata": {}, "spec": {"accessCredentials": list(credentials)}}


CLOUD_INIT = {
    "sshPublicKey": {"source": {"secret": {"secretName": "c"}}, "propagationMethod": {"noCloud": {}}}
}


def secret(directory: Path, name: str, **files: str) -> Path:
    """A secret as Kubernetes mounts it: files that are links into a directory of two dots."""
    mounted = directory / f"{name}-access-cred"
    data = mounted / "..2024"
    data.mkdir(parents=True)
    (mounted / "..data").symlink_to("..2024")
    for file, content in files.items():
        (data / file).write_text(content)
        (mounted / file).symlink_to(f"..data/{file}")
    return mounted


class Guest:
    """Connection, domain and guest agent in one. It has no command for SSH keys unless told to."""

    def __init__(self) -> None:
        self.keys: dict[str, list[str]] = {}
        self.files: dict[str, str] = {}
        self.passwords: dict[str, str] = {}
        self.commands: list[list[str]] = []
        self.knows_keys = False
        self.away = False
        self._open: dict[int, str] = {}

    raw = property(lambda self: self)

    def lookupByName(self, _name: str) -> Guest:  # noqa: N802 - libvirt's name
        return self

    def authorizedSSHKeysSet(self, user: str, keys: list[str], _flags: int) -> None:  # noqa: N802
        if not self.knows_keys:
            raise libvirt_error("no such command")
        self.keys[user] = keys

    def setUserPassword(self, user: str, word: str, _flags: int) -> None:  # noqa: N802
        if user == "nobody":
            raise libvirt_error("no such user")
        self.passwords[user] = word

    def agent(self, text: str) -> str:
        """Answer a command of the agent."""
        if self.away:
            raise libvirt_error("the agent is not connected")
        request = json.loads(text)
        arguments = request.get("arguments", {})
        return json.dumps({"return": getattr(self, request["execute"].replace("-", "_"))(**arguments)})

    def guest_ping(self) -> dict[str, Any]:
        return {}

    def guest_exec(self, **arguments: Any) -> dict[str, Any]:
        self.commands.append([arguments["path"], *arguments["arg"]])
        return {"pid": len(self.commands) - 1}

    def guest_exec_status(self, pid: int) -> dict[str, Any]:
        output = b"root:x:0:0:root:/root:/bin/sh\n" if self.commands[pid][0] == "getent" else b""
        return {"exited": True, "exitcode": 0, "out-data": base64.b64encode(output).decode()}

    def guest_file_open(self, path: str, mode: str) -> int:
        if mode == "r" and path not in self.files:
            raise libvirt_error("No such file or directory")
        self._open[7] = path
        return 7

    def guest_file_read(self, handle: int, count: int) -> dict[str, Any]:
        content = self.files[self._open[handle]].encode()[:count]
        return {"count": len(content), "buf-b64": base64.b64encode(content).decode()}

    def guest_file_write(self, **arguments: Any) -> dict[str, Any]:
        content = base64.b64decode(arguments["buf-b64"])
        self.files[self._open[arguments["handle"]]] = content.decode()
        return {"count": len(content)}

    def guest_file_close(self, handle: int) -> dict[str, Any]:
        del self._open[handle]
        return {}


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> Guest:
    """A guest that all agent commands go to; secrets are looked at often."""
    made = Guest()
    monkeypatch.setattr(
        libvirt_qemu, "qemuAgentCommand", lambda _domain, text, _timeout, _flags: made.agent(text)
    )
    monkeypatch.setattr(access_credentials, "LOOK_SECONDS", 0.05)
    return made


def play(
    guest: Guest,
    instance: dict[str, Any],
    secrets: Path,
    scenario: Callable[[MetadataCache], Awaitable[None]],
) -> None:
    """Play a scenario with the credentials begun with."""

    async def body() -> None:
        metadata, connection = MetadataCache(), cast(Connection, guest)
        poller = AgentPoller(connection, "ns_vm", AgentStore())
        credentials = AccessCredentials(connection, "ns_vm", poller, metadata, secrets)
        credentials.start(instance)
        credentials.start(instance)
        try:
            async with asyncio.timeout(60):
                await scenario(metadata)
        finally:
            await credentials.stop()
            poller.stop()

    asyncio.run(body())


async def until(condition: Callable[[], Any]) -> None:
    """Wait for a condition."""
    while not condition():
        await asyncio.sleep(0.01)


def result(metadata: MetadataCache) -> tuple[bool, str] | None:
    """How it went, as the node agent is told."""
    section = metadata.section("AccessCredential")
    return None if section is None else (section["Succeeded"], section["Message"])


def test_only_what_goes_by_way_of_the_agent_is_read(tmp_path: Path) -> None:
    secret(tmp_path, "a", one="ssh-ed25519 A\n\n  ssh-rsa B  \n", two="ssh-rsa C")
    secret(tmp_path, "p", root="old\n", guest="word", empty=" \n")
    secret(tmp_path, "q", root="new")
    instance = vmi(ssh("a", "root", "guest"), CLOUD_INIT, password("p"), password("q"))
    found = read_credentials(instance, tmp_path)
    keys = ["ssh-ed25519 A", "ssh-rsa B", "ssh-rsa C"]
    assert found.keys == {"root": keys, "guest": keys}
    assert found.passwords == {"root": "new", "guest": "word"}
    assert found.problems == []
    assert [path.name for path in credential_directories(instance, tmp_path)] == [
        "a-access-cred",
        "p-access-cred",
        "q-access-cred",
    ]


def test_keys_and_passwords_come_into_the_guest_and_change(tmp_path: Path, guest: Guest) -> None:
    keys = secret(tmp_path, "a", key="ssh-rsa A")
    secret(tmp_path, "p", root="word")
    guest.knows_keys = True

    async def scenario(metadata: MetadataCache) -> None:
        await until(lambda: result(metadata) == (True, ""))
        assert (guest.keys, guest.passwords) == ({"root": ["ssh-rsa A"]}, {"root": "word"})
        (keys / "..2024/key").write_text("ssh-rsa B")
        await until(lambda: guest.keys == {"root": ["ssh-rsa B"]})

    play(guest, vmi(ssh("a", "root"), password("p")), tmp_path, scenario)


def test_an_agent_without_the_command_gets_a_file(tmp_path: Path, guest: Guest) -> None:
    secret(tmp_path, "a", key="ssh-rsa A\nssh-rsa B")

    async def scenario(metadata: MetadataCache) -> None:
        await until(lambda: result(metadata) == (True, ""))

    play(guest, vmi(ssh("a", "root")), tmp_path, scenario)
    assert guest.files == {"/root/.ssh/authorized_keys": "ssh-rsa A\nssh-rsa B"}
    assert guest.commands == [
        ["getent", "passwd", "root"],
        ["mkdir", "-p", "/root/.ssh"],
        ["chown", "0:0", "/root/.ssh"],
        ["chmod", "700", "/root/.ssh"],
        ["chown", "0:0", "/root/.ssh/authorized_keys"],
        ["chmod", "600", "/root/.ssh/authorized_keys"],
    ]


def test_a_file_that_is_right_is_left_alone(tmp_path: Path, guest: Guest) -> None:
    secret(tmp_path, "a", key="ssh-rsa A")
    guest.files["/root/.ssh/authorized_keys"] = "ssh-rsa A"

    async def scenario(metadata: MetadataCache) -> None:
        await until(lambda: result(metadata) == (True, ""))

    play(guest, vmi(ssh("a", "root")), tmp_path, scenario)
    assert guest.commands == [["getent", "passwd", "root"]]


def test_an_agent_that_comes_late_is_waited_for(tmp_path: Path, guest: Guest) -> None:
    secret(tmp_path, "p", root="word")
    guest.away = True

    async def scenario(metadata: MetadataCache) -> None:
        await until(lambda: result(metadata) == (False, "the guest agent is offline"))
        guest.away = False
        await until(lambda: result(metadata) == (True, ""))

    play(guest, vmi(password("p")), tmp_path, scenario)
    assert guest.passwords == {"root": "word"}


def test_what_fails_is_told_and_keeps_nothing_else_from_being_done(tmp_path: Path, guest: Guest) -> None:
    secret(tmp_path, "p", nobody="x", root="hunter2")

    async def scenario(metadata: MetadataCache) -> None:
        await until(lambda: result(metadata) is not None)
        succeeded, message = result(metadata) or (True, "")
        assert not succeeded
        assert message.startswith("secret missing: cannot be read from ")
        assert "password of user nobody: no such user" in message
        assert "hunter2" not in message

    play(guest, vmi(ssh("missing", "root"), password("p")), tmp_path, scenario)
    assert guest.passwords == {"root": "hunter2"}


def test_a_vmi_without_credentials_starts_nothing(tmp_path: Path, guest: Guest) -> None:
    async def scenario(metadata: MetadataCache) -> None:
        await asyncio.sleep(0.2)
        assert result(metadata) is None

    play(guest, vmi(CLOUD_INIT), tmp_path, scenario)
