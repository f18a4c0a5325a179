"""Following a guest to its end, with a domain that does as it is told."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import libvirt
import pytest

from kvnode.launcher import follow
from kvnode.launcher.follow import Follower, Mailbox
from kvnode.virt.domain import DomainState
from kvnode.virt.errors import VirtError

ACTIVE = DomainState(True, False, "")
SHUT = DomainState(False, False, "the guest shut down")


class Domain:
    """A domain that shuts down after ``presses`` presses of its power button, or never."""

    def __init__(self, presses: int | None = 1) -> None:
        """Start active."""
        self.now = ACTIVE
        self.presses = presses
        self.calls: list[str] = []
        self.failures = 0

    def state(self) -> DomainState:
        """Where it stands; fails ``failures`` times first."""
        if self.failures:
            self.failures -= 1
            raise VirtError("asking for the guest's state", "broken pipe")
        return self.now

    def press_power_button(self) -> None:
        """Note the press."""
        self.calls.append("press")
        if self.presses is not None and self.calls.count("press") >= self.presses:
            self.now = SHUT

    def destroy(self) -> None:
        """Note the end."""
        self.calls.append("destroy")
        self.now = DomainState(False, False, "the domain was destroyed")


class Connection:
    """A connection that counts how often it was opened anew."""

    def __init__(self) -> None:
        """Start open."""
        self.reopened = 0

    def reopen(self, _timeout: float) -> None:
        """Count."""
        self.reopened += 1


class Scene:
    """A follower with all that it talks to."""

    def __init__(self, request: Path, presses: int | None = 1, grace: float = 30.0) -> None:
        """Set it up; nothing runs yet."""
        self.domain, self.connection, self.mailbox = Domain(presses), Connection(), Mailbox()
        self.follower = Follower(self.connection, self.domain, self.mailbox, grace, request)  # type: ignore[arg-type]

    def stop(self) -> None:
        """Ask for the stop as a signal does."""
        self.mailbox.on_signal(signal.SIGTERM, None)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the times short."""
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(follow, "PRESS_SECONDS", 0.1)


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    """Where a stop says how long it may take; absent at first."""
    return tmp_path / "stop.json"


def test_a_guest_that_ends_by_itself(request_file: Path) -> None:
    scene = Scene(request_file)
    scene.domain.now = SHUT
    scene.mailbox.on_lifecycle("vm", libvirt.VIR_DOMAIN_EVENT_STOPPED, 0)
    assert scene.follower.run() == SHUT
    assert (scene.follower.stopping, scene.follower.destroyed, scene.follower.panicked) == (False, "", False)
    assert scene.domain.calls == []


def test_an_end_without_an_event_is_seen(request_file: Path) -> None:
    scene = Scene(request_file)
    threading.Timer(0.2, lambda: setattr(scene.domain, "now", SHUT)).start()
    assert scene.follower.run() == SHUT


def test_a_stop_presses_the_button_and_again_until_it_is_heard(request_file: Path) -> None:
    scene = Scene(request_file, presses=3)
    scene.stop()
    assert scene.follower.run() == SHUT
    assert scene.domain.calls == ["press"] * 3
    assert scene.follower.stopping
    assert scene.follower.destroyed == ""


def test_a_deaf_guest_is_destroyed_after_its_grace_period(request_file: Path) -> None:
    scene = Scene(request_file, presses=None, grace=2.0)
    scene.stop()
    assert not scene.follower.run().crashed
    assert scene.domain.calls[-1] == "destroy"
    assert scene.domain.calls.count("press") >= 2
    assert scene.follower.destroyed == "did not shut down in time and was destroyed"


def test_no_grace_means_at_once(request_file: Path) -> None:
    request_file.write_text(json.dumps({"grace": 0}))
    scene = Scene(request_file, presses=None)
    scene.stop()
    scene.follower.run()
    assert scene.domain.calls == ["destroy"]
    assert scene.follower.destroyed == "was ended at once, as asked"


def test_a_second_request_can_only_shorten(request_file: Path) -> None:
    scene = Scene(request_file, presses=None, grace=60.0)
    scene.stop()

    def hurry() -> None:
        request_file.write_text(json.dumps({"grace": 0}))
        scene.stop()

    threading.Timer(0.2, hurry).start()
    scene.follower.run()
    assert scene.domain.calls[-1] == "destroy"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"grace": "soon"}', '{"grace": null}', '{"other": 1}'])
def test_a_damaged_request_leaves_the_grace_period(request_file: Path, content: str) -> None:
    request_file.write_text(content)
    scene = Scene(request_file, presses=1)
    scene.stop()
    assert scene.follower.run() == SHUT
    assert scene.domain.calls == ["press"]


def test_a_daemon_that_went_away_is_connected_to_again(request_file: Path) -> None:
    scene = Scene(request_file)
    scene.mailbox.on_closed()
    scene.domain.failures = 1
    threading.Timer(0.4, lambda: setattr(scene.domain, "now", SHUT)).start()
    assert scene.follower.run() == SHUT
    assert scene.connection.reopened == 2, "once for the news, once for the call that failed"


def test_a_panic_is_told_from_other_ends(request_file: Path) -> None:
    scene = Scene(request_file)
    scene.domain.now = DomainState(False, True, "QEMU was killed or crashed")
    scene.mailbox.on_lifecycle("vm", libvirt.VIR_DOMAIN_EVENT_CRASHED, 0)
    assert scene.follower.run().crashed
    assert scene.follower.panicked


def test_signals_become_the_wish_to_stop() -> None:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    mailbox = Mailbox()
    try:
        mailbox.install()
        for number in numbers:
            os.kill(os.getpid(), number)
            assert mailbox.get(60) == "stop"
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert mailbox.get(0) == ""
