"""The status of a VM as its launcher keeps it: one JSON file, always whole."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

#: Phases in the order in which a VM goes through them; ``Succeeded`` and ``Failed`` end it.
SCHEDULED, RUNNING, SUCCEEDED, FAILED = "Scheduled", "Running", "Succeeded", "Failed"


def now() -> str:
    """Return the time as RFC 3339 in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass
class Status:
    """What is known of the VM; a change counts when :meth:`write` has been called."""

    path: Path
    uid: str = ""
    phase: str = SCHEDULED
    reason: str = ""
    message: str = ""
    created: str = ""
    started: str = ""
    ended: str = ""
    domain: str = ""
    versions: str = ""
    adapted: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pids: dict[str, int] = field(default_factory=dict)
    """Role to process id in the VM's own PID namespace."""

    def write(self) -> None:
        """Write the file: another name first, then renamed. Raises OSError."""
        content = asdict(self)
        del content["path"]
        staging = self.path.with_name(f".{self.path.name}.new")
        with staging.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        staging.replace(self.path)

    def enter(self, phase: str, reason: str = "", message: str = "") -> None:
        """Go to a phase, with its time, and write."""
        self.phase, self.reason, self.message = phase, reason, message
        if phase == RUNNING:
            self.started = now()
        elif phase in {SUCCEEDED, FAILED}:
            self.ended = now()
        self.write()
