"""libvirt's event loop, in one daemon thread for the whole process."""

from __future__ import annotations

import threading

import libvirt

_started = threading.Lock()
_state = {"running": False}


def run_event_loop() -> None:
    """Start the event loop once; must come before the first connection is opened."""
    with _started:
        if _state["running"]:
            return
        libvirt.registerErrorHandler(lambda _context, _error: None, None)  # errors come as exceptions
        libvirt.virEventRegisterDefaultImpl()
        threading.Thread(target=_loop, name="libvirt-events", daemon=True).start()
        _state["running"] = True


def _loop() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()
