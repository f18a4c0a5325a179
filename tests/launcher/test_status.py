"""The status file: always whole, with a time for each phase."""

from __future__ import annotations

import json
import re
from pathlib import Path

from kvnode.launcher.status import FAILED, RUNNING, SUCCEEDED, Status


def test_phases_have_their_times(tmp_path: Path) -> None:
    status = Status(tmp_path / "status.json", uid="u", created="2026-01-01T00:00:00Z", domain="default_vm")
    status.enter(RUNNING)
    running = json.loads(status.path.read_text())
    assert (running["phase"], running["ended"], running["created"]) == (RUNNING, "", "2026-01-01T00:00:00Z")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", running["started"])
    status.enter(SUCCEEDED, "GuestShutdown", "the guest shut down by itself")
    ended = json.loads(status.path.read_text())
    assert (ended["phase"], ended["reason"], ended["started"]) == (
        SUCCEEDED,
        "GuestShutdown",
        running["started"],
    )
    assert ended["ended"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["status.json"]


def test_a_vm_that_never_ran_has_no_start(tmp_path: Path) -> None:
    status = Status(tmp_path / "status.json")
    status.enter(FAILED, "LibvirtMissing", "libvirtd is not installed")
    found = json.loads(status.path.read_text())
    assert (found["started"], bool(found["ended"])) == ("", True)
