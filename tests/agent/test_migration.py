"""Whether a VMI is on its way, and whether it could be."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.agent.conditions import migratable, state
from kvnode.agent.migration import is_in_progress, is_migrating, is_source, is_synchronized_source
from kvnode.spec.config import ClusterConfig
from tests.agent.build import NOW, domain, vmi

PAST, FUTURE = "2024-06-01T11:00:00Z", "2024-06-01T13:00:00Z"
SYNCED = {"syncAddress": "1.2.3.4", "nodeAddress": "1.2.3.4"}


def moving(**migration: Any) -> dict[str, Any]:
    return vmi(status={"migrationState": migration})


@pytest.mark.parametrize(
    ("migration", "by_clock", "in_progress"),
    [
        ({}, False, False),
        ({"startTimestamp": PAST}, True, True),
        ({"startTimestamp": FUTURE}, False, True),
        ({"startTimestamp": PAST, "endTimestamp": PAST}, False, False),
        ({"startTimestamp": PAST, "endTimestamp": FUTURE}, True, False),
        ({"startTimestamp": "yesterday"}, True, True),
    ],
)
def test_begun_and_not_ended(migration, by_clock, in_progress):
    assert is_migrating(moving(**migration), NOW) is by_clock
    assert is_in_progress(moving(**migration), None) is in_progress


def test_a_target_is_on_its_way_until_it_is_done():
    target = {"kubevirt.io/create-migration-target": "true"}
    assert is_in_progress(vmi(annotations=target), None)
    assert not is_in_progress(vmi(annotations=target, status={"migrationState": {"completed": True}}), None)


@pytest.mark.parametrize(
    ("migration", "source"),
    [
        ({"sourceNode": "node01", "targetNodeAddress": "1.2.3.4"}, True),
        ({"sourceNode": "other", "targetNodeAddress": "1.2.3.4"}, False),
        ({"sourceNode": "node01"}, False),
        ({"sourceNode": "node01", "targetNodeAddress": "1.2.3.4", "completed": True}, False),
        (
            {
                "sourceNode": "node01",
                "targetNodeAddress": "1.2.3.4",
                "sourceState": {},
                "targetState": {"syncAddress": "1.2.3.4"},
            },
            False,
        ),
        (
            {
                "sourceNode": "node01",
                "targetNodeAddress": "1.2.3.4",
                "sourceState": {},
                "targetState": SYNCED,
            },
            True,
        ),
    ],
)
def test_where_the_guest_still_is(migration, source):
    assert is_source(moving(**migration), "node01") is source


def test_both_sides_of_a_move_between_clusters_must_know_of_it():
    assert is_synchronized_source(moving(targetState=SYNCED))
    assert not is_synchronized_source(moving(targetState={"syncAddress": "1.2.3.4"}))
    assert not is_synchronized_source(moving())


def test_a_pause_that_the_migration_made():
    one = moving(sourceNode="node01", targetNodeAddress="1.2.3.4", mode="Paused")
    state.set_paused(one, domain("Paused", "Migration"), "node01", NOW)
    assert one["status"]["conditions"][0]["reason"] == "PausedByMigrationMonitor"


NODE = migratable.Node(
    ClusterConfig.from_mapping(
        {
            "network": {"binding": {"moves": {"migration": {}}, "stays": {}}},
            "developerConfiguration": {"featureGates": ["VGPULiveMigration"]},
            "permittedHostDevices": {"mediatedDevices": [{"mdevNameSelector": "m", "resourceName": "v/m"}]},
        }
    ),
    "Westmere",
)


def with_interface(**binding: Any) -> dict[str, Any]:
    return vmi(
        spec={
            "networks": [{"name": "default", "pod": {}}],
            "domain": {"devices": {"interfaces": [{"name": "default", **binding}]}},
        }
    )


@pytest.mark.parametrize(
    ("binding", "moves"),
    [
        ({"masquerade": {}}, True),
        ({"passtBinding": {}}, True),
        ({"binding": {"name": "moves"}}, True),
        ({"binding": {"name": "stays"}}, False),
        ({"binding": {"name": "unknown"}}, False),
        ({"sriov": {}}, False),
        ({"name": "elsewhere", "masquerade": {}}, False),
    ],
)
def test_bindings(binding, moves):
    assert (migratable.check_interfaces(with_interface(**binding), NODE) is None) == moves


@pytest.mark.parametrize(
    ("gpus", "moves"),
    [([{"deviceName": "v/m"}], True), ([{"deviceName": "v/p"}], False), ([{"deviceName": "v/m"}] * 2, False)],
)
def test_gpus(gpus, moves):
    one = vmi(spec={"domain": {"devices": {"gpus": gpus}}})
    assert (migratable.check_host_devices(one, NODE) is None) == moves


def test_gpus_need_their_gate():
    one = vmi(spec={"domain": {"devices": {"gpus": [{"deviceName": "v/m"}]}}})
    obstacle = migratable.check_host_devices(one, migratable.Node(ClusterConfig(), ""))
    assert obstacle is not None
    assert "VGPULiveMigration" in obstacle.message


def test_secure_execution_is_of_one_architecture():
    security = {"domain": {"launchSecurity": {}}}
    assert migratable.check_secure_execution(vmi(spec={**security, "architecture": "s390x"}), NODE)
    assert not migratable.check_secure_execution(vmi(spec={**security, "architecture": "amd64"}), NODE)


def test_reservations_are_of_one_host():
    lun = {"name": "a", "lun": {"reservation": True}}
    assert migratable.check_reservation(vmi(spec={"domain": {"devices": {"disks": [lun]}}}), NODE)


@pytest.mark.parametrize(
    ("features", "hints", "moves"),
    [
        ([], {}, False),
        ([], {"tscFrequency": 1}, True),
        ([{"name": "invtsc", "policy": "require"}], {}, True),
        ([{"name": "invtsc", "policy": "disable"}], {}, False),
    ],
)
def test_timers(features, hints, moves):
    spec = {
        "domain": {
            "cpu": {"features": features},
            "features": {"hyperv": {"reenlightenment": {"enabled": True}}},
        }
    }
    one = vmi(spec=spec, status={"topologyHints": hints})
    assert (migratable.check_tsc(one, NODE) is None) == moves


def with_volume(volume: dict[str, Any], claim: Any = None, **more: Any) -> dict[str, Any]:
    status = {"volumeStatus": [{"name": "a", "persistentVolumeClaimInfo": claim}], **more.pop("status", {})}
    spec = {"volumes": [{"name": "a", **volume}], "domain": {"devices": more}}
    return vmi(spec=spec, status=status)


PVC = {"persistentVolumeClaim": {"claimName": "c"}}
RWX, RWO = {"accessModes": ["ReadWriteMany"]}, {"accessModes": ["ReadWriteOnce"]}
LIVE, BLOCKS, STAYS = (False, True), (True, True), (True, False)


@pytest.mark.parametrize(
    ("one", "outcome"),
    [
        (with_volume(PVC, RWX), LIVE),
        (with_volume(PVC, RWO), STAYS),
        (with_volume(PVC), STAYS),
        (with_volume(PVC, RWO, status={"migratedVolumes": [{"volumeName": "a"}]}), BLOCKS),
        (with_volume({"dataVolume": {"name": "d"}}, RWX), LIVE),
        (with_volume({"hostDisk": {"path": "/x"}}), STAYS),
        (with_volume({"hostDisk": {"path": "/x", "shared": True}}), LIVE),
        (with_volume({"hostDisk": {"path": "/x"}}, RWX), LIVE),
        (with_volume({"hostDisk": {"path": "/x", "shared": True}}, RWO), STAYS),
        (with_volume({"containerDisk": {}}), BLOCKS),
        (with_volume({"containerDisk": {}}, disks=[{"name": "a", "cdrom": {}}]), LIVE),
        (with_volume({"containerDisk": {}}, disks=[{"name": "a", "cdrom": {"readonly": False}}]), BLOCKS),
        (with_volume({"configMap": {}}, filesystems=[{"name": "a", "virtiofs": {}}]), LIVE),
    ],
)
def test_volumes(one, outcome):
    by_blocks, obstacle = migratable.check_volumes(one)
    assert (by_blocks, obstacle is None) == outcome
