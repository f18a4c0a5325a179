"""``virt-launcher`` from its command line to its exit status (``cmd/virt-launcher/virt-launcher.go:344``).

The daemons are started first; what needs much code is loaded while they get ready.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from kvnode.launcher import log
from kvnode.launcher.daemons import Programs
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.log import logger
from kvnode.launcher.pod.directories import make_directories
from kvnode.launcher.pod.libvirt_files import LibvirtFiles, write_libvirt_files
from kvnode.launcher.pod.options import PodOptions
from kvnode.launcher.pod.supervise import Supervised
from kvnode.launcher.programs.flags import FlagError
from kvnode.virt.errors import VirtError

#: Exit status of a launcher that could not go on; 0 is for every VM that ended, however it did.
FAILED, USAGE = 1, 2

_STOP_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)
#: ``-v`` from which the log tells more.
_TALKATIVE = 4


def main(argv: Sequence[str]) -> NoReturn:
    """Run the launcher and end the process: a call that hangs in a thread must not keep it."""
    status = run(argv)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run(argv: Sequence[str]) -> int:
    """Run the launcher; returns its exit status."""
    log.set_up()
    try:
        options = PodOptions.read(argv)
    except FlagError as error:
        logger.error("%s", error)
        return USAGE
    if options.verbosity >= _TALKATIVE:
        logger.setLevel(logging.DEBUG)
    try:
        return asyncio.run(_run(options))
    except (LauncherError, VirtError, OSError) as error:
        logger.error("%s", error)
        return FAILED


async def _run(options: PodOptions) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, _on_signal, number, stop)
    make_directories(options)
    if options.simulate_crash:
        raise LauncherError("SimulatedCrash", "--simulate-crash asks for this end")
    if options.hook_sidecars:
        raise LauncherError(
            "HookSidecars", "hook sidecars are not supported by this launcher (--hook-sidecars)"
        )
    files = write_libvirt_files(options, Programs.find())
    daemons = _daemons(files)
    try:
        for daemon in daemons:
            await daemon.start()
        from kvnode.launcher.pod.session import Session  # noqa: PLC0415 - while the daemons get ready

        return await Session(options, files, daemons, stop).run()
    finally:
        await asyncio.gather(*(daemon.stop() for daemon in reversed(daemons)))


def _daemons(files: LibvirtFiles) -> list[Supervised]:
    """The daemon of domains, then the log daemon, as the reference has it."""
    command, environment = files.daemon()
    return [
        Supervised("virtqemud", command, environment),
        Supervised("virtlogd", files.log_daemon()),
    ]


def _on_signal(number: int, stop: asyncio.Event) -> None:
    if not stop.is_set():
        logger.info("received %s", signal.Signals(number).name)
    stop.set()
