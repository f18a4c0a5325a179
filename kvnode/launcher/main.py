"""The launcher: prepares a VM's disks, runs its daemons, starts its domain and follows it to the end.

It runs in namespaces where the paths of a launcher pod are (``/var/run/kubevirt-private`` …), whoever made
them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvnode.launcher import daemons, log, paths, prepare
from kvnode.launcher.disk_modes import set_disk_modes
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.follow import Follower, Mailbox
from kvnode.launcher.log import logger
from kvnode.launcher.oom import OUT_OF_MEMORY, OomWatch
from kvnode.launcher.qemu_files import LOOK_SECONDS, LOST_SECONDS, forget_start, qemu_lives
from kvnode.launcher.status import FAILED, RUNNING, SUCCEEDED, Status
from kvnode.virt.adapt import adapt
from kvnode.virt.connection import Connection
from kvnode.virt.domain import Domain, DomainState
from kvnode.virt.errors import VirtError

#: Seconds that the libvirt daemon may take to answer first: it probes QEMU, which takes long on a busy
#: machine.
CONNECT_SECONDS = 60.0

#: How often a domain is brought up anew when the daemon died over it.
BRING_UP_ATTEMPTS = 3


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser; options that KubeVirt's launcher has too are named as there."""
    command = argparse.ArgumentParser(prog="virt-launcher", description="Run one virtual machine.")
    command.add_argument(
        "--vm-directory", type=Path, required=True, help="directory with vmi.json and domain.xml"
    )
    command.add_argument("--name", required=True, help="name of the VMI")
    command.add_argument("--namespace", required=True, help="namespace of the VMI")
    command.add_argument("--uid", required=True, help="UID of the VMI")
    command.add_argument(
        "--grace-period-seconds", type=float, default=30.0, help="time to shut down (default 30)"
    )
    command.add_argument("--huge-pages", action="store_true", help="libvirt uses /dev/hugepages")
    return command


def main(argv: Sequence[str] | None = None) -> int:
    """Run the VM to its end; 0 unless it failed to start or ended badly."""
    options = parser().parse_args(argv)
    log.set_up()
    os.umask(0o022)
    directory: Path = options.vm_directory
    status = _status(directory, options)
    launcher = Launcher(options, status)
    try:
        return launcher.run()
    except (LauncherError, VirtError, OSError) as error:
        reason = error.reason if isinstance(error, LauncherError) else "LauncherFailed"
        logger.error("%s", error)
        status.enter(FAILED, reason, str(error))
        return 1
    finally:
        launcher.close()


def _status(directory: Path, options: argparse.Namespace) -> Status:
    path = directory / "status.json"
    created = ""
    try:
        created = str(json.loads(path.read_bytes()).get("created", ""))
    except (OSError, ValueError, AttributeError):
        logger.warning("status.json cannot be read; starting a new one")
    domain = f"{options.namespace}_{options.name}"
    return Status(path, uid=options.uid, created=created, domain=domain)


def _wait_for_log_daemon(log_socket: Path) -> None:
    end = time.monotonic() + CONNECT_SECONDS
    while not daemons.takes_connections(log_socket):
        if time.monotonic() >= end:
            raise LauncherError(
                "LibvirtMissing", "the log daemon (virtlogd) takes no connections; see its messages"
            )
        time.sleep(LOOK_SECONDS)


class Launcher:
    """One VM's launcher."""

    def __init__(self, options: argparse.Namespace, status: Status) -> None:
        """Keep the options; nothing is started yet."""
        self._options = options
        self._status = status
        self._daemons: dict[str, daemons.Supervised] = {}
        self._connection: Connection | None = None
        self._oom = OomWatch()

    def run(self) -> int:
        """Start the VM and follow it; raises LauncherError, VirtError or OSError when it cannot
        be started.
        """
        mailbox = Mailbox()
        mailbox.install()
        prepare.make_directories(self._options.uid)
        programs = daemons.Programs.find()
        daemons.write_configuration(programs, self._options.huge_pages)
        self._daemons = daemons.start_daemons(programs)
        prepare.run_steps(self._vmi())
        connection = Connection(programs.uri, mailbox.on_lifecycle, mailbox.on_closed)
        self._connection = connection
        domain = self._bring_up(connection, programs.log_socket)
        self._record_pids()
        self._status.enter(RUNNING)
        logger.info("the guest runs")
        request = self._options.vm_directory / "stop.json"
        follower = Follower(connection, domain, mailbox, self._options.grace_period_seconds, request)
        return self._conclude(follower, follower.run())

    def close(self) -> None:
        """Close the connection and end the daemons."""
        if self._connection is not None:
            self._connection.close()
        for daemon in self._daemons.values():
            daemon.stop()

    def _bring_up(self, connection: Connection, log_socket: Path) -> Domain:
        """Define and start the domain. When a daemon dies over it, its successor is asked again."""
        domain = Domain(connection, self._status.domain)
        log_daemon = self._daemons["virtlogd"]
        for attempt in range(BRING_UP_ATTEMPTS):
            starts = log_daemon.starts
            try:
                connection.reopen(CONNECT_SECONDS)
                _wait_for_log_daemon(log_socket)
                if attempt:
                    self._undo_lost_start(connection, domain)
                if attempt == 0 or not domain.state().active:
                    domain.define(self._adapted(connection))
                    domain.start()
            except VirtError as error:
                logged = daemons.takes_connections(log_socket) and log_daemon.starts == starts
                if attempt == BRING_UP_ATTEMPTS - 1 or (connection.answers() and logged):
                    raise
                logger.warning("a daemon of libvirt went away (%s); asking its successor", error)
            else:
                break
        return domain

    def _undo_lost_start(self, connection: Connection, domain: Domain) -> None:
        """Have the daemon forget a start of which its predecessor died (:mod:`kvnode.launcher.qemu_files`)."""
        pid_file = paths.qemu_pid_file(self._status.domain)
        end = time.monotonic() + LOST_SECONDS
        while domain.state().active and not qemu_lives(pid_file):
            if time.monotonic() >= end:
                logger.error("libvirt waits for a QEMU that is gone: its daemon is made to forget the start")
                self._daemons["virtqemud"].replace(lambda: forget_start(pid_file))
                connection.reopen(CONNECT_SECONDS)
                return
            time.sleep(LOOK_SECONDS)

    def _vmi(self) -> Mapping[str, Any]:
        try:
            vmi = json.loads((self._options.vm_directory / "vmi.json").read_bytes())
        except ValueError:
            raise LauncherError("LauncherFailed", "vmi.json is not JSON") from None
        if not isinstance(vmi, dict):
            raise LauncherError("LauncherFailed", "vmi.json holds no object")
        return vmi

    def _adapted(self, connection: Connection) -> str:
        directory: Path = self._options.vm_directory
        versions = connection.versions()
        try:
            adapted = adapt((directory / "domain.xml").read_bytes(), versions.libvirt, standalone=True)
        except ValueError as error:
            raise LauncherError("LauncherFailed", f"domain.xml: {error}") from None
        xml = set_disk_modes(adapted.xml)
        (directory / "domain-adapted.xml").write_text(xml, encoding="utf-8")
        self._status.versions = versions.describe()
        self._status.adapted = list(adapted.rules)
        self._status.notes = list(adapted.notes)
        logger.info("%s; adapted: %s", versions.describe(), ", ".join(adapted.rules) or "nothing")
        return xml

    def _record_pids(self) -> None:
        pids = {role: daemon.pid for role, daemon in self._daemons.items()}
        pids["launcher"] = os.getpid()
        try:
            pids["qemu"] = int(paths.qemu_pid_file(self._status.domain).read_text(encoding="ascii"))
        except (OSError, ValueError):
            logger.warning("libvirt left no process id of QEMU")
        self._status.pids = pids

    def _conclude(self, follower: Follower, end: DomainState) -> int:
        if end.crashed:
            reason = "GuestPanicked" if follower.panicked else "QemuDied"
            message = "the guest panicked" if follower.panicked else end.reason
            if not follower.panicked and self._oom.killed():
                reason, message = "OutOfMemory", OUT_OF_MEMORY
            logger.error("the guest ended badly: %s", message)
            self._status.enter(FAILED, reason, message)
            return 1
        if follower.destroyed:
            reason, message = "Destroyed", f"the guest {follower.destroyed}"
        elif follower.stopping:
            reason, message = "Stopped", end.reason
        else:
            reason, message = "GuestShutdown", f"{end.reason} by itself"
        logger.info("the end: %s", message)
        self._status.enter(SUCCEEDED, reason, message)
        return 0
