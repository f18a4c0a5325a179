"""The word to a VM's owner before its memory overhead is used up."""

from __future__ import annotations

from typing import Any

from kvnode.agent.observe.headroom import PAUSE, REASON, REMEMBERED, Headroom, message
from kvnode.spec.config import ClusterConfig
from tests.agent.build import vmi
from tests.agent.observe.build import process, report


class Told:
    """Takes Events, on a clock that the test turns."""

    def __init__(self, gate: bool = False) -> None:
        self.now = 0.0
        self.events: list[tuple[str, str, str, str]] = []
        gates = ["ReservedOverheadMemlock"] if gate else []
        config = ClusterConfig.from_mapping({"developerConfiguration": {"featureGates": gates}})
        self.headroom = Headroom(self, lambda: config, lambda: self.now)

    def event(self, vmi: dict[str, Any], kind: str, reason: str, message: str) -> None:
        self.events.append((vmi["metadata"]["name"], kind, reason, message))

    def use(self, percent: int, uid: str = "uid-1") -> int:
        """A minute later so much is used of the request; the answer is the number of events so far."""
        self.now += 60
        self.headroom.seen(vmi(uid=uid), report(process("qemu", 7, percent * 2 - 1, 78), requested=200))
        return len(self.events)


def test_one_word_when_little_is_left() -> None:
    told = Told()
    assert told.use(89) == 0
    assert told.use(90) == 1
    assert told.events[0][:3] == ("testvmi", "Warning", REASON)
    assert told.use(95) == told.use(101) == 1


def test_what_swings_about_the_threshold_is_no_flood() -> None:
    told = Told()
    for _ in range(10):
        told.use(91)
        told.use(85)
    assert len(told.events) == 1


def test_after_it_was_over_it_is_told_anew_but_not_within_an_hour() -> None:
    told = Told()
    told.use(91)
    told.use(79)
    assert told.use(91) == 1
    told.now += PAUSE
    assert told.use(91) == 2


def test_what_stays_is_told_once_however_long_it_stays() -> None:
    told = Told()
    told.use(91)
    told.now += 2 * PAUSE
    assert told.use(91) == 1


def test_vms_are_told_apart() -> None:
    told = Told()
    told.use(91)
    assert told.use(91, uid="uid-2") == 2


def test_nothing_is_said_of_a_vm_without_processes_or_request() -> None:
    told = Told()
    told.headroom.seen(vmi(), report(process("qemu", 7, 9, 9), requested=0))
    empty = report(process("qemu", 7, 9, 9), requested=1)
    told.headroom.seen(vmi(), type(empty)(**{**empty.as_dict(), "processes": ()}))
    assert told.events == []


def test_vms_that_are_long_gone_are_forgotten() -> None:
    told = Told()
    for number in range(1000):
        told.use(91, uid=f"old-{number}")
    told.now += REMEMBERED
    assert told.use(91, uid="old-1000") == 1001
    assert len(told.headroom._known) == 1


def test_the_message_names_who_takes_what_and_what_to_raise() -> None:
    text = message(
        report(process("qemu", 7, 130, 78), process("launcher", 6, 60, 100), process("virtqemud", 5, 70, 0)),
        reserved_overhead=False,
    )
    assert text.startswith(
        "beside the guest's memory 261 MiB are used of 268 MiB requested, 7 MiB are left: "
        "qemu 130 MiB (of 78 MiB), virtqemud 70 MiB, launcher 60 MiB (of 100 MiB), page tables 1 MiB (of 2 MiB). "
    )
    assert "additionalGuestMemoryOverheadRatio" in text
    assert "addedOverhead" not in text


def test_the_vm_s_own_field_is_named_where_the_cluster_has_it() -> None:
    told = Told(gate=True)
    told.use(95)
    assert "spec.domain.memory.reservedOverhead.addedOverhead" in told.events[0][3]


def test_an_overrun_is_called_so_and_many_processes_are_summed_up() -> None:
    text = message(report(*(process(f"p{n}", n, 100 - n, 0) for n in range(8))), reserved_overhead=False)
    assert "more than that" in text
    assert "3 others 282 MiB" in text
    assert "p5" not in text
