"""What changes in the domain, from which field, and whether the running guest takes it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import kvnode
from kvnode.provenance import Change, Comparison
from tests.fast.helpers import merged
from tests.provenance.cases import CONTEXT, NAMES, VMI, load

CPU = "spec.domain.cpu"


def with_domain(**domain: Any) -> dict[str, Any]:
    """The instance with these parts laid over its domain."""
    return merged(VMI, {"spec": {"domain": domain}})


def compare(wanted: dict[str, Any], running: dict[str, Any] = VMI, **more: Any) -> Comparison:
    return kvnode.diff(running, wanted, CONTEXT, **more)


def by_path(comparison: Comparison) -> dict[str, Change]:
    return {change.path: change for change in comparison.changes}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_differs_from_itself(name: str) -> None:
    vmi, context = load(name)
    comparison = kvnode.diff(vmi, copy.deepcopy(vmi), context)
    assert not comparison
    assert not comparison.needs_restart


def test_a_field_that_needs_a_restart() -> None:
    comparison = compare(with_domain(cpu={"cores": 4}))
    change = by_path(comparison)["cpu/topology/@cores"]
    assert (change.action, change.old, change.new) == ("changed", "3", "4")
    assert change.fields == (f"{CPU}.cores",)
    assert not change.live
    assert comparison.needs_restart


def test_a_field_that_is_taken_live() -> None:
    running = with_domain(cpu={"maxSockets": 4})
    comparison = compare(with_domain(cpu={"maxSockets": 4, "sockets": 3}), running)
    assert {change.path.rpartition("/")[2] for change in comparison.changes} == {"@enabled"}
    assert all(change.live and change.fields == (f"{CPU}.sockets",) for change in comparison.changes)
    assert not comparison.needs_restart


def test_each_change_has_its_own_field() -> None:
    wanted = with_domain(cpu={"cores": 4}, machine={"type": "pc-q35-9.2"}, firmware={"serial": "s-43"})
    changes = by_path(compare(wanted))
    assert changes["os/type/@machine"].fields == ("spec.domain.machine.type",)
    assert changes["cpu/topology/@cores"].fields == (f"{CPU}.cores",)
    (serial,) = [change for change in changes.values() if change.new == "s-43"]
    assert serial.fields == ("spec.domain.firmware.serial",)


def test_a_line_that_two_fields_make() -> None:
    change = by_path(compare(with_domain(cpu={"cores": 4, "threads": 2})))["vcpu/text()"]
    assert change.fields == (f"{CPU}.cores", f"{CPU}.threads")


def plug(**more: Any) -> dict[str, Any]:
    """The instance with another disk, on a hotpluggable claim."""
    wanted = copy.deepcopy(VMI)
    wanted["spec"]["domain"]["devices"]["disks"].append({"name": "new", "disk": {"bus": "scsi"}})
    source = {"persistentVolumeClaim": {"claimName": "new", "hotpluggable": True}}
    wanted["spec"]["volumes"].append({"name": "new", **source, **more})
    wanted["status"] = {"volumeStatus": [{"name": "new", "target": "", "hotplugVolume": {}}]}
    return wanted


def test_a_disk_comes_and_goes() -> None:
    plugged = compare(plug())
    (change,) = plugged.changes
    assert (change.action, change.live) == ("added", True)
    assert change.path == "devices/disk[4]"
    assert 'alias name="ua-new"' in (change.new or "")
    assert change.fields == ("spec.domain.devices.disks[3]", "spec.volumes[3]")
    unplugged = compare(VMI, plug())
    (change,) = unplugged.changes
    assert (change.action, change.live, change.new) == ("removed", True, None)


def test_disks_in_another_order() -> None:
    wanted = copy.deepcopy(VMI)
    wanted["spec"]["domain"]["devices"]["disks"].reverse()
    comparison = compare(wanted)
    (field,) = comparison.fields
    assert (field.fields, field.live) == (("spec.domain.devices.disks",), False)
    assert all(change.fields == field.fields for change in comparison.changes)


def test_a_field_outside_of_the_domain() -> None:
    comparison = compare(merged(VMI, {"spec": {"nodeSelector": {"zone": "a"}, "hostname": "h"}}))
    assert not comparison.changes
    found = {field.fields: (field.live, field.in_domain) for field in comparison.fields}
    assert found == {("spec.nodeSelector",): (True, False), ("spec.hostname",): (False, False)}
    assert comparison.needs_restart


def test_what_the_cluster_writes_is_left_out() -> None:
    wanted = merged(VMI, {"metadata": {"resourceVersion": "7"}, "status": {"phase": "Running"}})
    assert not compare(wanted)


def test_labels_touch_no_guest() -> None:
    comparison = compare(merged(VMI, {"metadata": {"labels": {"a": "b"}}}))
    assert comparison
    assert not comparison.needs_restart


def test_another_node() -> None:
    comparison = kvnode.diff(VMI, VMI, CONTEXT, wanted_context={**CONTEXT, "memBalloonStatsPeriod": 5})
    (change,) = comparison.changes
    assert (change.path, change.fields) == ("devices/memballoon/stats/@period", ())
    assert "node" in change.why


WRITTEN: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "prod"},
    "spec": {"domain": {"cpu": {"sockets": 1}, "memory": {"guest": "2Gi"}, "devices": {}}},
}


def updated(**domain: Any) -> Comparison:
    """A manifest and its update, each defaulted by itself, as two files on a desk are."""
    written = merged(WRITTEN, {"spec": {"domain": domain}})
    running, wanted = (kvnode.apply_defaults(vmi, "amd64") for vmi in (WRITTEN, written))
    return kvnode.diff(running, wanted, CONTEXT, written=written)


def test_what_the_running_instance_was_given_is_kept() -> None:
    assert not updated()  # its firmware's UUID is random
    grown = updated(cpu={"sockets": 3}, memory={"guest": "4Gi"})
    assert not grown.needs_restart
    assert {field.fields for field in grown.fields} == {(f"{CPU}.sockets",), ("spec.domain.memory.guest",)}


def test_room_is_made_anew_by_a_restart() -> None:
    comparison = updated(cpu={"sockets": 5})
    assert by_path(comparison)["cpu/topology/@sockets"].new == "20"
    assert comparison.needs_restart


def test_what_was_written_is_not_kept() -> None:
    comparison = updated(cpu={"maxSockets": 8})
    assert by_path(comparison)["cpu/topology/@sockets"].new == "8"


def test_inputs_stay_as_they_are() -> None:
    running, wanted = copy.deepcopy(VMI), plug()
    before = copy.deepcopy((running, wanted))
    compare(wanted, running, written=wanted)
    assert (running, wanted) == before


@pytest.mark.parametrize(("one", "other"), list(zip(NAMES[:-1:2], NAMES[1::2], strict=False)))
def test_every_change_is_told_once(one: str, other: str) -> None:
    """Of two machines that have nothing to do with each other: all changes are there, and each has fields."""
    (running, node), (wanted, other_node) = load(one), load(other)
    comparison = kvnode.diff(running, wanted, node, wanted_context=other_node)
    assert comparison.changes
    assert all(change.why for change in comparison.changes)
    known = {(change.action, change.path) for change in comparison.changes}
    assert len(known) == len(comparison.changes)
    assert json.loads(json.dumps(comparison.to_json())) == comparison.to_json()


def test_what_does_not_convert() -> None:
    with pytest.raises(kvnode.ConversionError):
        compare({"spec": []})
