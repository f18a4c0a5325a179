"""``python -m tests.virt.daemon_main``: libvirt's daemons in the namespaces that this process was started in.

They run until this process gets SIGTERM, or the process that started all of it is gone: standard input is a
pipe that it holds.
"""

from __future__ import annotations

import sys

from kvnode.launcher import daemons, prepare


def main() -> None:
    """Write the configuration, start the daemons and wait."""
    prepare.make_directories("unused")
    programs = daemons.Programs.find()
    daemons.write_configuration(programs, huge_pages=False)
    running = daemons.start_daemons(programs)
    print(programs.uri, flush=True)
    sys.stdin.read()
    for daemon in running.values():
        daemon.stop()


if __name__ == "__main__":
    main()
