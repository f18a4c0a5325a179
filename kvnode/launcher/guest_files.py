"""Files in the guest by way of its agent: how SSH keys get to guests whose agent has no command for them.

The functions block; they raise libvirtError, and GuestFileError for what the guest answers. The guest needs
``getent``, ``mkdir``, ``chown`` and ``chmod`` (``pkg/virt-launcher/virtwrap/access-credentials``).
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from typing import Any

import libvirt
import libvirt_qemu

#: Seconds that a command in the guest may take, and between looks whether it has ended.
EXEC_SECONDS, LOOK_SECONDS = 10.0, 0.1
#: Most that is read of a file, in bytes.
MOST_BYTES = 1 << 20


class GuestFileError(Exception):
    """The guest does not do what it was asked to; one line."""


def command(domain: libvirt.virDomain, name: str, **arguments: Any) -> Any:
    """The ``return`` of a command of the agent."""
    request: dict[str, Any] = {"execute": name}
    if arguments:
        request["arguments"] = {key.replace("_", "-"): value for key, value in arguments.items()}
    answer = libvirt_qemu.qemuAgentCommand(
        domain, json.dumps(request), libvirt_qemu.VIR_DOMAIN_QEMU_AGENT_COMMAND_DEFAULT, 0
    )
    try:
        return json.loads(answer)["return"]
    except (ValueError, KeyError, TypeError):
        raise GuestFileError(f"{name}: no return in the guest agent's answer") from None


def execute(domain: libvirt.virDomain, program: str, *arguments: str) -> str:
    """Run a program in the guest and return what it printed."""
    pid = command(domain, "guest-exec", path=program, arg=list(arguments), capture_output=True)
    end = time.monotonic() + EXEC_SECONDS
    while True:
        status = command(domain, "guest-exec-status", pid=_part(pid, "pid", program))
        if _part(status, "exited", program):
            break
        if time.monotonic() > end:
            raise GuestFileError(f"{program}: has not ended within {EXEC_SECONDS:g} s in the guest")
        time.sleep(LOOK_SECONDS)
    if status.get("exitcode") != 0:
        raise GuestFileError(f"{program} {' '.join(arguments)}: fails in the guest")
    return _decoded(str(status.get("out-data", "")), program).decode(errors="replace")


def home_of(domain: libvirt.virDomain, user: str) -> tuple[str, str]:
    """A user's home directory, and its owner as ``uid:gid``."""
    fields = execute(domain, "getent", "passwd", user).strip().split(":")
    if len(fields) < 6 or not fields[5].startswith("/"):
        raise GuestFileError(f"user {user}: has no home directory in the guest")
    return fields[5], f"{fields[2]}:{fields[3]}"


def read_file(domain: libvirt.virDomain, path: str) -> str | None:
    """A file's content; None when it is not there."""
    try:
        handle = command(domain, "guest-file-open", path=path, mode="r")
    except libvirt.libvirtError as error:
        if "No such file or directory" in (error.get_error_message() or ""):
            return None
        raise
    try:
        part = command(domain, "guest-file-read", handle=handle, count=MOST_BYTES)
    finally:
        command(domain, "guest-file-close", handle=handle)
    return _decoded(str(_part(part, "buf-b64", path)), path).decode(errors="replace")


def write_file(domain: libvirt.virDomain, path: str, content: str, owner: str, *, exists: bool) -> None:
    """Give a file this content, its owner alone to read it; its directory is made where it is missing."""
    directory = path.rpartition("/")[0]
    execute(domain, "mkdir", "-p", directory)
    _give(domain, directory, "700", owner)
    if exists:
        _give(domain, path, "600", owner)
    handle = command(domain, "guest-file-open", path=path, mode="w")
    try:
        encoded = base64.b64encode(content.encode()).decode()
        command(domain, "guest-file-write", handle=handle, buf_b64=encoded)
    finally:
        command(domain, "guest-file-close", handle=handle)
    if not exists:
        _give(domain, path, "600", owner)


def _give(domain: libvirt.virDomain, path: str, mode: str, owner: str) -> None:
    execute(domain, "chown", owner, path)
    execute(domain, "chmod", mode, path)


def _part(answer: Any, name: str, what: str) -> Any:
    if not isinstance(answer, dict) or name not in answer:
        raise GuestFileError(f"{what}: no {name} in the guest agent's answer")
    return answer[name]


def _decoded(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        raise GuestFileError(f"{what}: the guest agent's answer is not base64") from None
