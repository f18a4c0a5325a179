"""From libvirt's events to what the node agent is told: each time the whole domain, read anew.

The rules are those of ``pkg/virt-launcher/notify-client/client.go:eventCallback``. Events come into a queue of any
length (the reference's holds ten and drops what comes then) and are worked off one after the other; changes of the
metadata and of what the guest agent told are worked in, once for any number of them.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt

from kvnode.launcher.log import logger
from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.launcher.manager.states import state_name, told_reason
from kvnode.launcher.notify import ADDED, MODIFIED, WARNING, Notifier
from kvnode.launcher.pod.link import Link
from kvnode.launcher.pod.panic import describe_panic, read_panic
from kvnode.launcher.pod.settings import Subject
from kvnode.virt.domain_json import encode_domain, make_metadata, make_status, new_domain, read_spec
from kvnode.virt.domain_json.errors import DomainFormatError
from kvnode.virt.errors import VirtError

NO_STATE, NON_EXISTENT = "NoState", "NonExistent"
STARTING = ("Paused", "StartingUp")

AGENT_CHANNEL = "org.qemu.guest_agent.0"


@dataclass(frozen=True)
class News:
    """One event; all None: look at the domain anew."""

    lifecycle: tuple[int, int] | None = None
    """libvirt's event and detail."""

    agent: int | None = None
    """The guest agent's new state, in libvirt's numbers."""

    job: Mapping[str, Any] | None = None
    """What libvirt says of a job that was completed."""


@dataclass(frozen=True)
class Reading:
    """A domain as libvirt has it; ``spec`` is None when there is none, or it cannot be read just now."""

    state: str
    reason: str
    spec: dict[str, Any] | None = None
    disk_errors: Mapping[str, int] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing runs any more. A domain that was never started is off for no reason; one that could not
        be started (``Failed``) may be at the next try.
        """
        if self.state in ("Shutoff", "Crashed"):
            return self.reason not in ("Unknown", "Failed")
        return self.reason == NON_EXISTENT

    @property
    def starts(self) -> bool:
        """Whether libvirt is about to start QEMU, or was when its daemon died."""
        return (self.state, self.reason) == STARTING

    @property
    def may_be_lost(self) -> bool:
        """Whether a start that was cut short may have left this: libvirt says the same of some of them as of a guest
        that ran and crashed.
        """
        return self.state == "Shutoff" and self.reason in ("Crashed", "Failed")

    @property
    def has_run(self) -> bool:
        """Whether it tells that QEMU has been started."""
        if self.state in ("Shutoff", "Crashed"):
            return self.has_ended
        return self.state not in (NO_STATE, "") and not self.starts

    @property
    def agent_answers(self) -> bool:
        """Whether a guest agent is connected, in a guest that runs."""
        channels = (self.spec or {}).get("Devices", {}).get("Channels") or []
        targets = [channel["Target"] or {} for channel in channels]
        return self.state == "Running" and any(
            target.get("Name") == AGENT_CHANNEL and target.get("State") == "connected" for target in targets
        )


class Watcher:
    """Watches the one domain of this launcher."""

    def __init__(
        self,
        link: Link,
        notifier: Notifier,
        subject: Subject,
        *,
        metadata: MetadataCache,
        store: AgentStore,
        qemu_log: Path,
    ) -> None:
        """Prepare; :meth:`register` is to be called before the link is opened."""
        self.name = subject.domain
        self.defined = asyncio.Event()
        """Set when the domain has been seen."""

        self.ended = False
        """Whether the domain has run and does so no more."""

        self.has_run = False
        """Whether the domain has run."""

        self.listeners: list[Callable[[Reading], None]] = []
        """Called in the loop with the domain, each time that it was read."""

        self.holds_back: Callable[[], bool] = lambda: False
        """Whether a start that was cut short is being made up for: agents delete a domain that they hear is off."""

        self._loop = asyncio.get_running_loop()
        self._link = link
        self._notifier = notifier
        self._subject = subject
        self._metadata = metadata
        self._store = store
        self._qemu_log = qemu_log
        self._news: deque[News] = deque()
        self._some = asyncio.Event()
        self._seen = False
        self._panic: dict[str, Any] | None = None
        self._panics = 0
        self._panic_told = False
        self._failing: dict[str, int] = {}
        self._last = ("", "")
        self._task: asyncio.Task[None] | None = None

    @property
    def crashed(self) -> bool:
        """Whether the domain ended, or stopped, in another way than by shutting down or being ended."""
        state, reason = self._last
        return state == "Crashed" or (state == "Shutoff" and reason in ("Crashed", "Failed"))

    def register(self) -> None:
        """Ask for the events."""
        on = self._link.on_event
        on(libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._on_lifecycle)
        on(libvirt.VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE, self._on_agent)
        on(libvirt.VIR_DOMAIN_EVENT_ID_JOB_COMPLETED, self._on_job)
        for event in (
            libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_ADDED,
            libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED,
            libvirt.VIR_DOMAIN_EVENT_ID_MEMORY_DEVICE_SIZE_CHANGE,
        ):
            on(event, self._on_other)
        self._link.on_reconnected(self.look)

    def start(self) -> None:
        """Start to work."""
        self._metadata.listen(self._on_metadata)
        self._task = self._loop.create_task(self._run(), name="domain-watcher")

    async def stop(self) -> None:
        """Stop to work."""
        if self._task is not None:
            self._task.cancel()

    def refresh(self) -> None:
        """Tell the agent of the domain as it is now, if there has been one; to be called in the loop."""
        if self._seen:
            self.look()

    def look(self) -> None:
        """Look for the domain, should its events have been missed; to be called in the loop."""
        if News() not in self._news:
            self._put(News())

    # ---- events

    def _put(self, news: News) -> None:
        self._news.append(news)
        self._some.set()

    def _on_lifecycle(self, domain: str, event: int, detail: int) -> None:
        if domain == self.name:
            logger.info("domain event %d, detail %d", event, detail)
            self._seen = True
            self._put(News(lifecycle=(event, detail)))

    def _on_agent(self, domain: str, state: int, _reason: int) -> None:
        if domain == self.name:
            self._seen = True
            self._put(News(agent=state))

    def _on_job(self, domain: str, job: Mapping[str, Any]) -> None:
        if domain == self.name:
            self._seen = True
            self._put(News(job=job))

    def _on_other(self, domain: str, *_arguments: Any) -> None:
        if domain == self.name:
            self._seen = True
            self.refresh()

    def _on_metadata(self) -> None:
        """Called in any thread."""
        self._loop.call_soon_threadsafe(self.refresh)

    # ---- what becomes of them

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            if not self._news:
                self._some.clear()
                continue
            news = self._news.popleft()
            try:
                await self._tell(news)
            except Exception:
                logger.exception("an event of the domain could not be worked off")

    async def _tell(self, news: News) -> None:
        if news.lifecycle is not None and news.lifecycle[0] == libvirt.VIR_DOMAIN_EVENT_CRASHED:
            self._note_panic(news.lifecycle[1])
        reading = await self._read()
        if reading is None or (not self._seen and reading.reason == NON_EXISTENT):
            return
        if self._is_cut_short(news, reading):
            return
        self._seen = True
        if reading.spec is not None and reading.spec["UUID"]:
            self.defined.set()
        if (reading.state, reading.reason) != self._last:
            self._last = (reading.state, reading.reason)
            logger.info("the domain is %s (%s)", *self._last)
        self._note_disk_errors(reading)
        for listener in self.listeners:
            listener(reading)
        gone = reading.reason == NON_EXISTENT
        self.has_run = self.has_run or reading.has_run or _starts(news)
        # A definition that was taken back because it failed half-way is no end: the agent tries again.
        self.ended = reading.has_ended and self.has_run
        kind = ADDED if _adds(news) else MODIFIED
        self._notifier.domain_event(
            kind, encode_domain(self._domain(reading)), final=gone and kind == MODIFIED
        )

    def _is_cut_short(self, news: News, reading: Reading) -> bool:
        """Whether nothing is told because the start is being made up for, or libvirt will tell when it is through."""
        if self.has_run:
            return False
        held = self.holds_back()
        if held and reading.may_be_lost:
            return not _adds(news)
        return (held or reading.starts) and not reading.has_run and news.lifecycle is None

    def _domain(self, reading: Reading) -> dict[str, Any]:
        gone = reading.reason == NON_EXISTENT
        metadata: Mapping[str, Any] = make_metadata(UID=self._subject.uid)
        if not gone and reading.spec is not None:
            metadata = {**self._metadata.snapshot(), "UID": self._subject.uid}
        return new_domain(
            self._subject.namespace,
            self._subject.name,
            spec=reading.spec,
            status=make_status(
                Status=reading.state,
                Reason=reading.reason,
                GuestPanicInfo=self._panic,
                PanicCount=self._panics,
                **self._store.domain_fields(),
            ),
            metadata=metadata,
            uid=self._subject.uid,
            deletion_timestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) if gone else None,
        )

    async def _read(self) -> Reading | None:
        """The domain; None when libvirt cannot be asked (it will be when the connection is back)."""
        try:
            return await self._link.call(self._read_in_thread)
        except (VirtError, libvirt.libvirtError, DomainFormatError) as error:
            logger.warning("the domain cannot be read: %s", error)
            return None

    def _read_in_thread(self) -> Reading:
        try:
            domain = self._link.raw.lookupByName(self.name)
            state, reason = domain.state()
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                return Reading(NO_STATE, NON_EXISTENT)
            raise
        name = told_reason(state, reason, has_run=self.has_run)
        try:
            spec = read_spec(domain.XMLDesc(0))
        except libvirt.libvirtError as error:
            # Not allowed for a domain that is being migrated, or gone by now.
            if error.get_error_code() not in (libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_OPERATION_INVALID):
                raise
            return Reading(state_name(state), name)
        return Reading(state_name(state), name, spec, _disk_errors(domain) if name == "IOError" else None)

    # ---- events for the API server

    def _note_panic(self, detail: int) -> None:
        """A guest that panics for good is told of once; one that kdump reboots, each time."""
        if self._panic_told:
            return
        self._panic_told = detail == libvirt.VIR_DOMAIN_EVENT_CRASHED_PANICKED
        self._panic = read_panic(self._qemu_log)
        self._panics += 1
        self._notifier.k8s_event(WARNING, "GuestPanicked", describe_panic(self._panic))

    def _note_disk_errors(self, reading: Reading) -> None:
        """Disks that stopped the guest are told of once each time that they do."""
        errors = dict(reading.disk_errors or {})
        for target, error in errors.items():
            if error == libvirt.VIR_DOMAIN_DISK_ERROR_NONE or self._failing.get(target) == error:
                continue
            volume = _volume(reading.spec, target)
            full = error == libvirt.VIR_DOMAIN_DISK_ERROR_NO_SPACE
            what = "there is no space left on its storage" if full else "of an I/O error"
            self._notifier.k8s_event(WARNING, "IOerror", f"volume {volume}: the VM is paused because {what}")
        self._failing = errors


def _starts(news: News) -> bool:
    return news.lifecycle is not None and news.lifecycle[0] == libvirt.VIR_DOMAIN_EVENT_STARTED


def _adds(news: News) -> bool:
    """Whether an event brings a domain: one defined, one migrated here, or (as the reference has it) a backup."""
    if news.job is not None:
        return bool(news.job.get("operation") == libvirt.VIR_DOMAIN_JOB_OPERATION_BACKUP)
    return news.lifecycle in (
        (libvirt.VIR_DOMAIN_EVENT_DEFINED, libvirt.VIR_DOMAIN_EVENT_DEFINED_ADDED),
        (libvirt.VIR_DOMAIN_EVENT_STARTED, libvirt.VIR_DOMAIN_EVENT_STARTED_MIGRATED),
    )


def _disk_errors(domain: libvirt.virDomain) -> dict[str, int]:
    try:
        return dict(domain.diskErrors())
    except libvirt.libvirtError:
        return {}


def _volume(spec: Mapping[str, Any] | None, target: str) -> str:
    """The volume of the disk with that target; the target itself when it is not found."""
    for disk in (spec or {}).get("Devices", {}).get("Disks") or []:
        if disk["Target"]["Device"] == target:
            return str((disk["Alias"] or {}).get("Name") or target)
    return target
