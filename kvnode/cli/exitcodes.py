"""What ``kvnode`` exits with; docs/cli.md tells users the same."""

from __future__ import annotations

OK = 0
FAILED = 1
"""The manifest is wrong, or what was asked for did not come about."""
USAGE = 2
"""The command line itself is wrong."""
NOT_FOUND = 3
"""No VM of that name, or no such file."""
EXISTS = 4
"""A VM of that name runs already."""
ENVIRONMENT = 5
"""This machine lacks something: root, libvirt, QEMU, a Python package."""
LEADERSHIP_LOST = 6
"""A controller could not renew its Lease in time; another may lead now, and it may be started again."""
INTERNAL = 70
"""A defect of kvnode; KVNODE_TRACEBACK=1 shows where."""
INTERRUPTED = 130
"""Ctrl-C."""
