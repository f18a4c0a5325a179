"""Asks the guest agent, again and again, for what users and the node agent want to know.

Each kind of question has its interval; the first comes at once, the next after ten seconds at most, and the pauses
double up to the interval (``pkg/virt-launcher/virtwrap/agent-poller/agent_poller.go``). Nothing is asked while the
agent is not connected or the guest does not run. One thread asks: libvirt lets one question through at a time, and a
guest that hangs holds up nothing else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import libvirt
import libvirt_qemu

from kvnode.launcher.log import logger
from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.pod.settings import Intervals
from kvnode.virt.connection import Connection
from kvnode.virt.domain_json.scalars import whole
from kvnode.virt.errors import VirtError
from kvnode.virt.payloads.stats import LOAD

Result = TypeVar("Result")

#: Pause before the second question of a kind, in seconds.
FIRST_PAUSE = 10.0
#: Most that is kept of a list: a hostile guest names as many users as it likes.
MOST_ENTRIES = 1000
#: Most that is kept of a text: what the node agent is told must fit into a message.
MOST_CHARACTERS = 1024

_OS_NAMES = {
    "Name": "os.name",
    "KernelRelease": "os.kernel-release",
    "Version": "os.version",
    "PrettyName": "os.pretty-name",
    "VersionId": "os.version-id",
    "KernelVersion": "os.kernel-version",
    "Machine": "os.machine",
    "Id": "os.id",
}
# Fields of the store whose changes the node agent is told of.
_TOLD = ("os", "interfaces", "fs_freeze")
# libvirt 11.2 and later; an older one is not asked.
_LOAD_KIND = getattr(libvirt, "VIR_DOMAIN_GUEST_INFO_LOAD", 0)


Answer = dict[str, Any]
"""Fields of an AgentStore, and their new values."""


@dataclass(frozen=True)
class Question:
    """One kind of question: how often, and how it is asked (blocks; raises VirtError or libvirtError)."""

    name: str
    interval: float
    ask: Callable[[libvirt.virDomain], Answer]


def questions(intervals: Intervals) -> list[Question]:
    """All kinds."""
    info = libvirt.VIR_DOMAIN_GUEST_INFO_INTERFACES | libvirt.VIR_DOMAIN_GUEST_INFO_OS
    info |= libvirt.VIR_DOMAIN_GUEST_INFO_HOSTNAME | libvirt.VIR_DOMAIN_GUEST_INFO_TIMEZONE
    kinds = [
        Question("guest-info", intervals.version, lambda domain: read_agent(_command(domain, "guest-info"))),
        Question(
            "guest-get-fsinfo",
            intervals.files,
            lambda domain: {"filesystems": read_filesystems(_command(domain, "guest-get-fsinfo"))},
        ),
        Question(
            "guest-fsfreeze-status",
            intervals.freeze,
            lambda domain: {"fs_freeze": read_freeze(_command(domain, "guest-fsfreeze-status"))},
        ),
        Question("system", intervals.system, lambda domain: _guest_info(domain, info)),
        Question(
            "users", intervals.users, lambda domain: _guest_info(domain, libvirt.VIR_DOMAIN_GUEST_INFO_USERS)
        ),
    ]
    if _LOAD_KIND:
        kinds.append(Question("load", intervals.system, lambda domain: _guest_info(domain, _LOAD_KIND)))
    return kinds


class AgentPoller:
    """Polls one guest's agent."""

    def __init__(
        self, connection: Connection, domain: str, store: AgentStore, intervals: Intervals | None = None
    ) -> None:
        """Prepare; nothing is asked before :meth:`run_while`."""
        self.on_change: Callable[[], None] = lambda: None
        """Called in the loop when something changed that the node agent is told of."""

        self._connection = connection
        self._domain = domain
        self._store = store
        self._questions = questions(intervals or Intervals())
        self._executor = ThreadPoolExecutor(1, "guest-agent")
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def running(self) -> bool:
        """Whether it asks."""
        return bool(self._tasks)

    def run_while(self, answerable: bool) -> None:
        """Ask if there is somebody to answer, else stop."""
        if answerable and not self._tasks:
            logger.info("the guest agent is there")
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._poll(one), name=one.name) for one in self._questions]
        elif not answerable and self._tasks:
            logger.info("the guest agent is away")
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    async def ask(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run a function that waits for the agent in the thread that asks it; it waits for its turn."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)

    def stop(self) -> None:
        """Stop for good; a question under way is left behind."""
        self.run_while(False)
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _poll(self, question: Question) -> None:
        loop = asyncio.get_running_loop()
        pause = min(FIRST_PAUSE, question.interval)
        due = loop.time()
        while True:
            try:
                answer = await self.ask(self._ask, question)
                self._keep(answer)
            except (VirtError, libvirt.libvirtError, ValueError) as error:
                logger.debug("the guest agent gives no answer to %s: %s", question.name, error)
            due = max(due + pause, loop.time())
            await asyncio.sleep(due - loop.time())
            pause = min(2 * pause, question.interval)

    def _keep(self, answer: Answer) -> None:
        told = any(getattr(self._store, name) != answer[name] for name in _TOLD if name in answer)
        for name, value in answer.items():
            setattr(self._store, name, value)
        if told:
            self.on_change()

    def _ask(self, question: Question) -> Answer:
        return question.ask(self._connection.raw.lookupByName(self._domain))


# ---- questions, in the thread


def _command(domain: libvirt.virDomain, name: str) -> Any:
    """The ``return`` of a command without arguments; ValueError when the guest answers with something else."""
    text = libvirt_qemu.qemuAgentCommand(
        domain, json.dumps({"execute": name}), libvirt_qemu.VIR_DOMAIN_QEMU_AGENT_COMMAND_DEFAULT, 0
    )
    answer = json.loads(text)
    if not isinstance(answer, dict) or "return" not in answer:
        raise ValueError(f"{name}: no return in the answer")
    return answer["return"]


def _guest_info(domain: libvirt.virDomain, kinds: int) -> Answer:
    """Ask for all kinds at once, and for each alone when the guest does not know one of them."""
    try:
        return read_guest_info(domain.guestInfo(kinds, 0), kinds)
    except libvirt.libvirtError:
        single = [1 << bit for bit in range(kinds.bit_length()) if kinds >> bit & 1]
        if len(single) == 1:
            raise
    answer: Answer = {}
    for kind in single:
        try:
            answer.update(read_guest_info(domain.guestInfo(kind, 0), kind))
        except libvirt.libvirtError as error:
            logger.debug("the guest tells nothing of kind %d: %s", kind, error)
    return answer


# ---- answers


def read_agent(answer: Any) -> Answer:
    """Version and commands, out of ``guest-info``; ValueError when they are not there."""
    if not isinstance(answer, dict) or not isinstance(answer.get("version"), str):
        raise ValueError("guest-info: no version")  # noqa: TRY004 - of a value
    commands = [
        {"name": _text(entry.get("name", "")), "enabled": entry.get("enabled") is True}
        for entry in _entries(answer.get("supported_commands"))
    ]
    return {"version": _text(answer["version"]), "commands": commands}


def read_filesystems(answer: Any) -> list[dict[str, Any]]:
    """The file systems, out of ``guest-get-fsinfo``; ValueError when it is no list."""
    if not isinstance(answer, list):
        raise ValueError("guest-get-fsinfo: no list")  # noqa: TRY004 - of a value
    return [
        {
            "diskName": _text(entry.get("name", "")),
            "mountPoint": _text(entry.get("mountpoint", "")),
            "fileSystemType": _text(entry.get("type", "")),
            "usedBytes": _number(entry.get("used-bytes")),
            "totalBytes": _number(entry.get("total-bytes")),
            "disk": [
                {"serial": _text(disk.get("serial", "")), "busType": _text(disk.get("bus-type", ""))}
                for disk in _entries(entry.get("disk"))
            ],
        }
        for entry in _entries(answer)
    ]


def read_freeze(answer: Any) -> str:
    """``thawed`` or ``frozen``; ValueError when it is no text."""
    if not isinstance(answer, str) or not answer:
        raise ValueError("guest-fsfreeze-status: no state")
    return _text(answer)


def read_guest_info(info: Mapping[str, Any], kinds: int) -> Answer:
    """Read libvirt's flat answer (``if.0.addr.1.type``) for the kinds that were asked for."""
    answer: Answer = {}
    if kinds & libvirt.VIR_DOMAIN_GUEST_INFO_INTERFACES:
        answer["interfaces"] = _interfaces(info)
    if kinds & libvirt.VIR_DOMAIN_GUEST_INFO_OS:
        answer["os"] = {name: _text(info.get(key, "")) for name, key in _OS_NAMES.items()}
    if kinds & libvirt.VIR_DOMAIN_GUEST_INFO_HOSTNAME:
        answer["hostname"] = _text(info.get("hostname", ""))
    if kinds & libvirt.VIR_DOMAIN_GUEST_INFO_TIMEZONE:
        answer["timezone"] = (_text(info.get("timezone.name", "")), _number(info.get("timezone.offset")))
    if kinds & libvirt.VIR_DOMAIN_GUEST_INFO_USERS:
        answer["users"] = [
            {
                "userName": _text(info.get(f"{key}.name", "")),
                "domain": _text(info.get(f"{key}.domain", "")),
                "loginTime": _number(info.get(f"{key}.login-time")) / 1000,
            }
            for key in _numbered(info, "user")
        ]
    if kinds & _LOAD_KIND:
        answer["load"] = read_load(info)
    return answer


def read_load(info: Mapping[str, Any]) -> dict[str, Any]:
    """``stats.LOAD`` with what the guest tells."""
    fields: dict[str, Any] = {}
    for minutes in ("1m", "5m", "15m"):
        if isinstance(value := info.get(f"load.{minutes}"), float):
            fields |= {f"Load{minutes}": value, f"Load{minutes}Set": True}
    return LOAD.make(**fields)


def _interfaces(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All but the loopback; the first IPv4 address is the main one, or else the first of any kind."""
    interfaces = []
    for key in _numbered(info, "if"):
        name = _text(info.get(f"{key}.name", ""))
        if name == "lo":
            continue
        found = [
            (_text(info.get(f"{address}.type", "")), _text(info.get(f"{address}.addr", "")))
            for address in _numbered(info, f"{key}.addr")
        ]
        addresses = [address for _, address in found]
        main = next((address for kind, address in found if kind == "ipv4"), addresses[0] if addresses else "")
        interfaces.append(
            {
                "Mac": _text(info.get(f"{key}.hwaddr", "")),
                "Ip": main,
                "IPs": addresses or None,
                "InterfaceName": name,
            }
        )
    return interfaces


def _numbered(info: Mapping[str, Any], name: str) -> list[str]:
    count = min(_number(info.get(f"{name}.count")), MOST_ENTRIES)
    return [f"{name}.{number}" for number in range(count)]


def _entries(value: Any) -> Sequence[Mapping[str, Any]]:
    """The objects in a list that a guest gave; nothing when it is none."""
    if not isinstance(value, list):
        return []
    return [entry for entry in value[:MOST_ENTRIES] if isinstance(entry, dict)]


def _text(value: Any) -> str:
    """A text of the guest's, which is no longer than any real one and can be encoded."""
    return whole(str(value)[:MOST_CHARACTERS])


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else 0
