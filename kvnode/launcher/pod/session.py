"""From daemons that run to the VM's end: everything of the launcher that talks, and the order of its start and end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from kvnode.launcher import paths
from kvnode.launcher.access_credentials import AccessCredentials
from kvnode.launcher.agent_poller import AgentPoller
from kvnode.launcher.daemons import takes_connections
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.log import logger
from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.manager import Manager
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.launcher.manager.steps import Steps
from kvnode.launcher.network import PodNetwork
from kvnode.launcher.notify import PIPE, WARNING, Notifier
from kvnode.launcher.oom import OUT_OF_MEMORY, OomWatch
from kvnode.launcher.pod.firmware_log import FirmwareLog
from kvnode.launcher.pod.libvirt_files import LibvirtFiles
from kvnode.launcher.pod.link import Link
from kvnode.launcher.pod.lost_start import LostStart
from kvnode.launcher.pod.options import PodOptions
from kvnode.launcher.pod.qemu_process import QemuProcess
from kvnode.launcher.pod.standalone import start_guest
from kvnode.launcher.pod.supervise import Supervised
from kvnode.launcher.pod.trim import Trimmer
from kvnode.launcher.pod.watcher import Reading, Watcher
from kvnode.launcher.server.commands import Commands
from kvnode.launcher.server.serve import serve
from kvnode.net.dhcp.service import DhcpService
from kvnode.rpc.server import Server

#: Seconds that the libvirt daemon may take to answer first: it probes QEMU, which takes long on a busy machine.
CONNECT_SECONDS = 60.0
#: Seconds that the log daemon may take until it listens.
LOG_DAEMON_SECONDS = 30.0
#: Times that the daemon may be started before it answers for the first time.
MOST_STARTS = 3
#: The launcher's socket while it starts, and once it can be used: the new name is what the agent looks for.
INIT_SOCKET, READY_SOCKET = "launcher-init-sock", "launcher-sock"
#: Seconds between looks for a domain, should its event have been missed.
LOOK_SECONDS = 10.0
#: Seconds that the agent has to hear of the end: first by itself, then after QEMU was ended from here.
FINAL_SECONDS, FINAL_AFTER_KILL_SECONDS = 15.0, 30.0
#: Seconds that libvirt has to tell how the guest ended, where no agent waits for that.
SEEN_SECONDS = 5.0
#: Seconds that ending QEMU by way of libvirt may take before it is ended by a signal.
KILL_SECONDS = 10.0
#: Seconds between two presses of the power button of a VM that no agent drives.
PRESS_SECONDS = 5.0


class PodSteps(Steps):
    """The steps around a definition, and the start of what goes on after them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, credentials: AccessCredentials) -> None:
        """``credentials`` are begun with in ``loop``."""
        self._loop = loop
        self._credentials = credentials

    def before_define(self, vmi: Instance) -> None:
        """Make the disks, and see to access credentials from now on."""
        super().before_define(vmi)
        self._loop.call_soon_threadsafe(self._credentials.start, vmi.data)


class Session:
    """One run of the launcher."""

    def __init__(
        self,
        options: PodOptions,
        files: LibvirtFiles,
        daemons: Sequence[Supervised],
        stop: asyncio.Event,
    ) -> None:
        """Put the parts together; ``daemons``, the one of domains first, run on ``files``; ``stop`` is set when the
        VM is to be stopped.
        """
        subject = options.subject
        self._options = options
        self._daemons = daemons
        self._daemon = daemons[0]
        self._log_socket = files.programs.log_socket
        self._stop = stop
        self._metadata = MetadataCache()
        self._store = AgentStore()
        self._link = Link(files.uri, asyncio.get_running_loop())
        self._link.on_stuck = self._replace_daemon
        self._notifier = Notifier(options.share / PIPE, subject)
        self._watcher = Watcher(
            self._link,
            self._notifier,
            subject,
            metadata=self._metadata,
            store=self._store,
            qemu_log=options.qemu_log,
        )
        self._poller = AgentPoller(self._link, options.domain, self._store, options.intervals)
        self._poller.on_change = self._watcher.refresh
        self._watcher.listeners.append(self._on_reading)
        self._watcher.register()
        self._firmware = FirmwareLog()
        network = PodNetwork(DhcpService(paths.PRIVATE))
        self._credentials = AccessCredentials(self._link, options.domain, self._poller, self._metadata)
        self._manager = Manager(
            self._link,
            options.manager,
            self._metadata,
            agent=self._store,
            steps=PodSteps(asyncio.get_running_loop(), self._credentials),
            network=network,
        )
        self._manager.host.has_run = lambda: self._watcher.has_run
        self._commands = Commands(
            self._manager, vm_stats=options.manager.vm_stats, on_ping_failed=self._on_ping_failed
        )
        reference = {"name": subject.name, "namespace": subject.namespace, "uid": subject.uid}
        self._vmi = Instance.read(json.dumps({"metadata": reference}).encode())
        self._lost_start = LostStart(
            self._link,
            self._daemon,
            options.domain,
            options.qemu_pid_file,
            start_again=self._start_again,
            on_settled=self._watcher.look,
        )
        self._watcher.holds_back = lambda: self._lost_start.under_way
        self._server: Server | None = None
        self._oom = OomWatch()
        self._trimmer = Trimmer(asyncio.get_running_loop())
        self._background: set[asyncio.Task[Any]] = set()

    async def run(self) -> int:
        """Serve until the VM has ended; raises LauncherError, VirtError or OSError when it cannot go on."""
        try:
            self._firmware.start()
            await self._connect()
            self._notifier.start()
            self._watcher.start()
            self._server = await serve(
                self._options.sockets / INIT_SOCKET, self._commands, self._manager.memory_report, _owner()
            )
            self._server.move(self._options.sockets / READY_SOCKET)
            logger.info("ready")
            self._trimmer.trim()
            await start_guest(lambda vmi: self._manager.sync(vmi, None, ()), self._daemons)
            if await self._wait_for_domain():
                await self._follow()
            logger.info("the end")
            return self._status()
        finally:
            await self._close()

    def _status(self) -> int:
        """The exit status: 0 for a guest that ran, however it ended, as the agent is told how; else 1, unless nobody
        wants it any more. Without an agent nobody but the status tells how it ended.
        """
        if not self._watcher.has_run:
            return 0 if self._stop.is_set() else 1
        return 1 if self._options.standalone and self._watcher.crashed else 0

    async def _connect(self) -> None:
        """Connect to the daemon; raises LauncherError when it does not even stay, VirtError when it is silent."""
        connecting = asyncio.ensure_future(self._link.start(CONNECT_SECONDS))
        while not (await asyncio.wait([connecting], timeout=0.2))[0]:
            if self._daemon.starts > MOST_STARTS:
                connecting.cancel()
                raise LauncherError(
                    "LibvirtMissing",
                    f"{self._daemon.name} ends as soon as it is started; see its messages above",
                )
        await connecting
        await self._wait_for_log_daemon()

    async def _wait_for_log_daemon(self) -> None:
        """Until it takes connections no domain starts; when it does not, the agent's Sync will say so."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LOG_DAEMON_SECONDS
        while not takes_connections(self._log_socket):
            if loop.time() >= end:
                logger.error("virtlogd takes no connections at %s", self._log_socket)
                return
            await asyncio.sleep(0.05)

    async def _close(self) -> None:
        if self._server is not None:
            await self._server.stop()
        for task in self._background:
            task.cancel()
        self._lost_start.stop()
        self._trimmer.stop()
        await self._manager.close()
        await self._credentials.stop()
        self._poller.stop()
        await self._watcher.stop()
        await self._notifier.stop()
        await self._link.stop()
        self._firmware.stop()

    # ---- the domain

    async def _start_again(self) -> None:
        """Start a guest of which libvirt's daemon died before it had started, unless it is not wanted any more."""
        if not self._stop.is_set():
            await self._manager.start_again()

    async def _wait_for_domain(self) -> bool:
        """Wait until the domain is defined; False when the stop was asked for first.

        Raises LauncherError when nobody has defined it in time, or nobody wants it any more.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._options.qemu_timeout
        look = loop.time() + LOOK_SECONDS
        while not await _first(
            self._watcher.defined.wait, self._stop.wait, within=min(2.0, end - loop.time())
        ):
            if self._commands.exit_early:
                raise LauncherError("ExitEarly", "the pod is no longer wanted as the target of a migration")
            if loop.time() >= end:
                raise LauncherError(
                    "NoDomain",
                    f"no domain was defined within {self._options.qemu_timeout:g} s (--qemu-timeout)",
                )
            if loop.time() >= look:
                look = loop.time() + LOOK_SECONDS
                self._watcher.look()
        return self._watcher.defined.is_set()

    async def _follow(self) -> None:
        """Follow QEMU to its end, then see to it that the agent hears of that."""
        process = QemuProcess(
            self._options.qemu_pid_file,
            start_timeout=self._options.qemu_timeout,
            grace=self._options.grace_seconds,
            on_stop=self._on_stop,
            kill=self._kill,
            has_run=lambda: self._watcher.has_run,
            is_over=lambda: self._watcher.ended,
            give_up=lambda: self._commands.exit_early,
        )
        await process.follow(self._stop)
        if self._options.standalone:
            await _first(self._seen_to_end, within=SEEN_SECONDS)
            return
        told = self._notifier.final_told.wait
        if await _first(told, within=FINAL_SECONDS):
            return
        logger.warning("the agent has not heard of the end; ending QEMU, should it still run")
        await self._kill()
        if not await _first(told, within=FINAL_AFTER_KILL_SECONDS):
            logger.warning("the agent has not heard of the end")

    async def _seen_to_end(self) -> None:
        """Return when libvirt has told how the guest ended, which comes a little after QEMU's end."""
        while not self._watcher.ended:
            await asyncio.sleep(0.05)

    async def _on_stop(self) -> None:
        """The stop is the agent's to do; without one, it is done from here."""
        self._manager.mark_graceful_shutdown()
        if self._options.standalone:
            self._in_background(self._press_power_button())

    async def _press_power_button(self) -> None:
        """Press it until the process is gone: an operating system that boots does not hear the first time."""
        while True:
            try:
                await self._manager.shutdown(self._vmi)
            except Exception as error:
                logger.warning("the guest cannot be asked to shut down: %s", error)
            await asyncio.sleep(PRESS_SECONDS)

    async def _kill(self) -> bool:
        """End QEMU by way of libvirt; False when that cannot be asked for."""
        try:
            async with asyncio.timeout(KILL_SECONDS):
                await self._manager.kill(self._vmi)
        except Exception as error:
            logger.warning("libvirt does not end QEMU: %s", str(error) or "it does not answer")
            return False
        return True

    # ---- what the parts tell each other

    def _replace_daemon(self) -> None:
        """The guest does not need the daemon to run, but whoever wants to stop it does."""
        logger.error("%s is stuck: it is ended, and started again", self._daemon.name)
        self._daemon.replace(lambda: None)

    def _on_reading(self, reading: Reading) -> None:
        if reading.agent_answers and not self._poller.running:
            self._credentials.wake()
        self._poller.run_while(reading.agent_answers)
        if (reading.state, reading.reason) == ("Shutoff", "Crashed") and self._oom.killed():
            logger.error("%s", OUT_OF_MEMORY)
            self._notifier.k8s_event(WARNING, "OOMKilled", OUT_OF_MEMORY)
        if reading.state == "Running":
            self._trimmer.start()

    async def _on_ping_failed(self) -> None:
        self._notifier.k8s_event(WARNING, "GuestAgentPingFailed", "the guest agent does not answer a probe")

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


async def _first(*conditions: Callable[[], Coroutine[Any, Any, Any]], within: float) -> bool:
    """Wait for the first of some conditions; False when none came true in time."""
    tasks = [asyncio.ensure_future(condition()) for condition in conditions]
    try:
        done, _ = await asyncio.wait(tasks, timeout=max(0.0, within), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
    return bool(done)


def _owner() -> tuple[int, int]:
    return os.geteuid(), os.getegid()
