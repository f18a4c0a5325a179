"""``python -m tests.launcher.manager.pod_main OPTIONS``: a command server and its manager in the namespaces that
this process was started in, with libvirt's daemons beside it.

OPTIONS is JSON of ManagerOptions. It runs until SIGTERM, or until the process that started all of it is gone:
standard input is a pipe that it holds.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

from kvnode.launcher import daemons, log, paths, prepare
from kvnode.launcher.manager.manager import Manager
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.launcher.network import PodNetwork
from kvnode.launcher.server.commands import Commands
from kvnode.launcher.server.serve import serve
from kvnode.net.dhcp.service import DhcpService
from kvnode.virt.connection import Connection


async def run(options: ManagerOptions) -> None:
    """Serve until told to stop."""
    prepare.make_directories(options.uid)
    programs = daemons.Programs.find()
    daemons.write_configuration(programs, huge_pages=False)
    running = daemons.start_daemons(programs)
    connection = Connection(programs.uri, lambda *_: None, lambda: None)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, connection.open, 60.0)
    network = None if options.standalone else PodNetwork(DhcpService(paths.PRIVATE))
    manager = Manager(connection, options, network=network)
    commands = Commands(manager, vm_stats=options.vm_stats)
    server = await serve(paths.SOCKETS / "launcher-sock", commands, manager.memory_report)
    done = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, done.set)
    loop.add_reader(sys.stdin.fileno(), done.set)
    await done.wait()
    await server.stop()
    await manager.close()
    connection.close()
    for daemon in running.values():
        daemon.stop()


def main() -> None:
    """Read the options and run."""
    log.set_up()
    raw = json.loads(sys.argv[1])
    raw["ovmf_path"] = Path(raw["ovmf_path"])
    asyncio.run(run(ManagerOptions(**raw)))


if __name__ == "__main__":
    main()
