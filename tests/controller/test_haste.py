"""Which news of a VM and its VMI are looked at once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kvnode.controller.haste import SOON, vm_cannot_wait, vmi_cannot_wait
from kvnode.controller.vm import VirtualMachineController
from kvnode.controller.wiring import MachineHandlers
from kvnode.kube.informer import Change
from kvnode.kube.store import Store, entry_of
from tests.controller.objects import deleting, vm, vmi
from tests.reference.vmcases import VMScene

Object = dict[str, Any]
Edit = Callable[[Object], Any]


def change(before: Object | None, after: Object | None, *, own: bool = False) -> Change:
    entries = [entry_of(one) if one else None for one in (before, after)]
    return Change("default/testvm", *entries, own)


def edited(obj: Object, edit: Edit, *, own: bool = False) -> Change:
    after = copy.deepcopy(obj)
    edit(after)
    return change(obj, after, own=own)


def condition(kind: str, status: str, reason: str = "") -> Edit:
    made = {"type": kind, "status": status, "reason": reason}
    return lambda obj: obj["status"].setdefault("conditions", []).append(made)


def phase(word: str) -> Edit:
    return lambda obj: obj["status"].update(phase=word)


NOTHING: Edit = lambda _: None  # noqa: E731


@pytest.mark.parametrize(
    ("before", "edit"),
    [
        (vmi("Pending"), phase("Scheduling")),
        (vmi("Scheduled"), phase("Running")),
        (vmi("Scheduling"), lambda obj: obj["metadata"]["labels"].update(x="y")),
        (vmi("Scheduling"), condition("Ready", "False", "GuestNotRunning")),
        (vmi("Running"), condition("LiveMigratable", "False")),
        (vmi("Running"), lambda obj: obj["status"].update(guestOSInfo={"id": "x"})),
        (vmi("Running"), NOTHING),
    ],
    ids=["phase", "running", "label", "not-ready", "condition", "guest", "nothing"],
)
def test_news_of_a_vmi_that_can_wait(before: Object, edit: Edit) -> None:
    assert not vmi_cannot_wait(edited(before, edit))


@pytest.mark.parametrize(
    ("before", "edit"),
    [
        (vmi("Running"), phase("Failed")),
        (vmi("Scheduling"), phase("Failed")),
        (vmi("Running"), phase("Succeeded")),
        (vmi("Running"), phase("Scheduled")),
        (vmi("Running"), condition("Ready", "True")),
        (vmi("Running", conditions=[{"type": "Ready", "status": "True"}]), condition("Paused", "True")),
        (vmi("Scheduling"), condition("Synchronized", "False", "ErrImagePull")),
        (vmi("Scheduling"), condition("PodScheduled", "False", "Unschedulable")),
        (vmi("Running"), deleting),
        (deleting(vmi("Failed")), lambda obj: obj["metadata"]["finalizers"].pop()),
        (vmi("Running"), lambda obj: obj["metadata"].update(ownerReferences=[])),
        (vmi("Running"), lambda obj: obj["spec"]["domain"]["cpu"].update(sockets=2)),
        (vmi("Running"), lambda obj: obj["status"].update(migrationState={"startTimestamp": "x"})),
    ],
)
def test_news_of_a_vmi_that_cannot_wait(before: Object, edit: Edit) -> None:
    assert vmi_cannot_wait(edited(before, edit))


def test_a_vmi_comes_and_goes() -> None:
    assert vmi_cannot_wait(change(None, vmi()))
    assert vmi_cannot_wait(change(vmi(), None))
    assert not vmi_cannot_wait(change(None, vmi(), own=True))


@pytest.mark.parametrize("own", [True, False])
def test_what_we_wrote_about_a_vm_can_wait(own: bool) -> None:
    assert vm_cannot_wait(edited(vm(), lambda obj: obj["status"].update(ready=True), own=own)) is not own


@pytest.mark.parametrize(
    "edit",
    [
        lambda obj: obj["spec"].update(runStrategy="Always"),
        lambda obj: obj["spec"].update(running=True),
        deleting,
    ],
)
def test_a_vm_that_is_to_do_something_else_cannot_wait(edit: Edit) -> None:
    assert vm_cannot_wait(edited(vm("Halted"), edit, own=True))


def test_a_vm_that_is_to_go_cannot_wait() -> None:
    assert vm_cannot_wait(edited(deleting(vm()), lambda obj: obj["metadata"]["finalizers"].pop(), own=True))


class Asked:
    """A queue that remembers what it is asked for."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, bool]] = []

    def add(self, _key: str) -> None:
        self.seen.append((0, False))

    def add_after(self, _key: str, delay: float, *, urgent: bool = False) -> None:
        self.seen.append((delay, urgent))


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        (change(None, vmi("Pending"), own=True), (SOON, False)),
        (edited(vmi("Pending"), phase("Scheduling")), (SOON, True)),
        (edited(vmi("Running"), phase("Failed")), (0, True)),
        (change(vmi("Failed"), None), (0, True)),
    ],
    ids=["made", "told-soon", "failed", "gone"],
)
def test_the_queue_is_told_so(told: Change, asked: tuple[float, bool]) -> None:
    queue = Asked()
    controller: VirtualMachineController = VMScene({"vm": vm(), "vmi": None}).controller
    MachineHandlers(controller, Store(), queue).on_vmi(told)
    assert queue.seen == [asked]
