"""Which devices a launcher's control group lets it open (``pkg/virt-handler/cgroup/util.go:195-330``).

What kubelet gives a pod, the runtime has allowed already. What the VM needs beside that is allowed here, and only
that, where control groups are of version 1. In version 2 a filter of the runtime's decides, which knows all devices
that came with the pod; nothing can be added to it but by putting another in its place, and nothing has to be, as long
as no devices are plugged into running pods.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvnode.agent.cgroups import Groups
from kvnode.agent.errors import AgentError
from kvnode.agent.rootfs import opened
from kvnode.agent.vmi import Vmi, devices, interfaces, is_sev

logger = logging.getLogger(__name__)

_CONTROLLER = "devices"
_LIST, _ALLOW, _DENY = "devices.list", "devices.allow", "devices.deny"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a control group's list."""

    kind: str
    """``c`` or ``b``."""
    major: str
    minor: str
    access: str
    """Of ``r``, ``w`` and ``m``. Numbers may be ``*``."""

    def __str__(self) -> str:
        return f"{self.kind} {self.major}:{self.minor} {self.access}"

    def covers(self, other: Rule) -> bool:
        """Whether it allows all that another does."""
        return (
            self.kind in ("a", other.kind)
            and self.major in ("*", other.major)
            and self.minor in ("*", other.minor)
            and set(other.access) <= set(self.access)
        )


def read_rules(text: str) -> list[Rule]:
    """The lines of a list; those that are none are passed over."""
    found = []
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        numbers, _, access = rest.partition(" ")
        major, _, minor = numbers.partition(":")
        if kind in ("a", "b", "c") and major and minor and access:
            found.append(Rule(kind, major, minor, access))
    return found


def needed(vmi: Vmi, root: Path, host: Path) -> list[Rule]:
    """What a VM's QEMU opens, of what the launcher has below its root.

    Only what is the same device on the node (`host`, its ``/dev``) counts: a launcher could make a node of any name
    for any device. For the same reason nothing is allowed for devices that a VM has for itself (VFIO, USB, block
    volumes): which of them are its own is kubelet's to say, and kubelet has said it to the runtime.
    """
    names = ["kvm"]
    if devices(vmi).get("rng") is not None:
        names.append("urandom")
    if devices(vmi).get("autoattachVSOCK"):
        names.append("vhost-vsock")
    if is_sev(vmi):
        names.append("sev")
    if interfaces(vmi) or devices(vmi).get("autoattachPodInterface") in (None, True):
        names += ["net/tun", "vhost-net"]
    found = (rule for name in names if (rule := _rule(root, host, name)) is not None)
    return list(dict.fromkeys(found))


def _rule(root: Path, host: Path, name: str) -> Rule | None:
    try:
        with opened(root, f"dev/{name}", follow=False) as file:
            inside = os.fstat(file)
        outside = (host / name).lstat()
    except OSError:
        return None
    for kind, is_kind in (("c", stat.S_ISCHR), ("b", stat.S_ISBLK)):
        if is_kind(inside.st_mode) and is_kind(outside.st_mode) and inside.st_rdev == outside.st_rdev:
            return Rule(kind, str(os.major(inside.st_rdev)), str(os.minor(inside.st_rdev)), "rw")
    return None


def allow(groups: Groups, rules: Iterable[Rule]) -> list[Rule]:
    """Allow what is not allowed yet; the answer is what was added. Without the controller all is allowed.

    Raises:
        AgentError: the kernel refuses.
    """
    if groups.unified or _CONTROLLER not in groups.folders:
        return []
    folder = groups.folder(_CONTROLLER)
    added: list[Rule] = []
    try:
        known = read_rules((folder / _LIST).read_text())
        for rule in rules:
            if not any(one.covers(rule) for one in known):
                (folder / _ALLOW).write_text(str(rule))
                added.append(rule)
    except OSError as error:
        deny(groups, added)
        raise AgentError(
            f"the launcher's control group: devices cannot be allowed: {error.strerror}"
        ) from error
    return added


def deny(groups: Groups, rules: Sequence[Rule]) -> None:
    """Take back what was added. A group that is gone has taken it along."""
    folder = groups.folder(_CONTROLLER) if rules else Path()
    for rule in rules:
        try:
            (folder / _DENY).write_text(str(rule))
        except FileNotFoundError:
            return
        except OSError as error:
            logger.warning("%s: %s stays allowed: %s", folder, rule, error.strerror)
