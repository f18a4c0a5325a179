"""What the node refuses, and what becomes of it on the VMI; what is taken back when a VMI goes."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.agent.absent import NoHotplug
from kvnode.agent.cleanup import clean_up
from kvnode.agent.errors import AgentError
from kvnode.agent.memlock import memlock_bytes, set_memlock
from kvnode.spec.config import ClusterConfig
from kvnode.spec.overhead import memory_overhead
from tests.agent.build import domain, drive, run, vmi, world
from tests.reports import report

GIB = 1 << 30
PLUGGED = {"name": "hp", "persistentVolumeClaim": {"claimName": "c", "hotpluggable": True}}


def failing(made: Any) -> tuple[list[str], dict[str, Any]]:
    """What a pass that fails calls, and the condition that it leaves."""
    with pytest.raises(AgentError):
        run(made)
    conditions = {one["type"]: one for one in made.written["status"].get("conditions") or ()}
    return made.calls, conditions.get("Synchronized", {})


def guest(count: int, **memory: Any) -> dict[str, Any]:
    gpus = [{"name": f"g{number}", "deviceName": "vendor.example/gpu"} for number in range(count)]
    return vmi("Scheduled", spec={"domain": {"memory": memory, "devices": {"gpus": gpus}}})


@report("B04")
@pytest.mark.parametrize("count", [1, 2, 4])
def test_memory_is_locked_once_for_each_device(reported: str, count: int) -> None:
    found = guest(count, guest="100Gi")
    # 100Gi in thousands of bytes, rounded up.
    once = 107_374_183_000
    wanted = memory_overhead(found, "amd64") + once + (count - 1) * 100 * GIB
    assert memlock_bytes(found, "amd64", ClusterConfig()) == wanted


@report("B04")
@pytest.mark.parametrize(
    ("memory", "requested", "base"),
    [
        ({"guest": "1Gi", "maxGuest": "4Gi"}, "2Gi", 4 * GIB),
        ({"guest": "1Gi"}, "2Gi", 2 * GIB),
        ({"guest": "1Gi"}, None, GIB),
    ],
)
def test_the_most_that_the_guest_may_have_counts(
    reported: str, memory: dict[str, str], requested: str | None, base: int
) -> None:
    found = guest(3, **memory)
    if requested is not None:
        found["spec"]["domain"]["resources"] = {"requests": {"memory": requested}}
    more = memlock_bytes(found, "amd64", ClusterConfig()) - memory_overhead(found, "amd64")
    assert more == -(-base // 1000) * 1000 + 2 * base


def test_a_limit_that_the_kernel_refuses_is_said_on_the_vmi_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    async def adjust(_vmi: object) -> None:
        set_memlock(7, 123)

    made = world(guest(1, guest="1Gi"), None)
    monkeypatch.setattr("resource.prlimit", refuse)
    monkeypatch.setattr(made.parts.runtime, "adjust_resources", adjust)
    calls, condition = failing(made)
    assert "launcher.SyncVirtualMachine" not in calls
    assert "event:Warning:SyncFailed" in calls
    assert condition["status"] == "False"
    text = "limit of locked memory of process 7 cannot be set to 123 bytes: [Errno 1] Operation not permitted"
    assert text in condition["message"]
    assert "CAP_SYS_RESOURCE" in condition["message"]
    # Once it is allowed, the VM starts, and the condition goes.
    monkeypatch.setattr("resource.prlimit", lambda *_: None)
    made.vmi["status"]["conditions"] = [condition]
    made.begin()
    assert "launcher.SyncVirtualMachine" in run(made)
    assert "Synchronized" not in {one["type"] for one in made.written["status"]["conditions"]}


@pytest.mark.parametrize("phase", ["Scheduled", "Running"])
def test_volumes_to_be_plugged_in_are_refused(phase: str) -> None:
    asked = {"volumes": [PLUGGED], "utilityVolumes": [{"name": "dump"}]}
    made = world(vmi(phase, spec=asked), domain() if phase == "Running" else None)
    made.parts.hotplug = NoHotplug()
    calls, condition = failing(made)
    assert "launcher.SyncVirtualMachine" not in calls
    assert condition["status"] == "False"
    assert "spec.volumes: hp, dump: this agent does not plug volumes" in condition["message"]
    # The guest goes on, and ends as it is told to.
    assert not {"launcher.KillVirtualMachine", "launcher.DeleteVirtualMachine"} & set(calls)


def test_a_vmi_that_goes_gives_back_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world(vmi("Succeeded"), domain("Shutoff", "Shutdown"))
    given_back = []

    async def release(one: Any) -> None:
        given_back.append(one["metadata"]["uid"])

    monkeypatch.setattr(made.parts.runtime, "release", release)
    drive(clean_up(vmi("Succeeded"), made.parts))
    assert given_back == ["uid-1"]
