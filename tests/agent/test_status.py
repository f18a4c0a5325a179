"""Fields of the status, and the write of a pass."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.agent.status import checksums, fields
from kvnode.agent.status.volumes import update_volumes
from kvnode.agent.status.write import has_changed, status_patch, write_status
from kvnode.agent.vmi import copy_of
from kvnode.kube.errors import Conflict, Invalid
from kvnode.spec.config import ClusterConfig
from tests.agent.build import KEY, domain, drive, vmi, world

JSON = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)
STATUS = st.dictionaries(st.text(max_size=2), JSON, max_size=4)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


class TestPatch:
    @given(STATUS, STATUS)
    def test_it_leads_from_one_to_the_other(self, old, new):
        patch = status_patch({"status": old}, {"status": new})
        assert merged({"status": old}, patch) == {"status": new}

    @given(STATUS)
    def test_of_no_change_nothing_is_in_it(self, status):
        assert status_patch({"status": status}, {"status": status}) == {"status": {}}
        assert not has_changed(status, status)

    def test_what_is_empty_is_no_change(self):
        assert not has_changed({}, {"volumeStatus": [], "machine": None, "memory": {}, "selinuxContext": ""})

    def test_it_holds_for_one_version_alone(self):
        assert status_patch(vmi(), vmi("Failed")) == {
            "metadata": {"resourceVersion": "7"},
            "status": {"phase": "Failed"},
        }


class Api:
    def __init__(self, *answers):
        self.written: list[dict[str, Any]] = []
        self._answers = list(answers)

    async def write_status(self, _old, new):
        self.written.append(new["status"])
        answer = self._answers.pop(0) if self._answers else None
        if answer is not None:
            raise answer


def refusal(*names: str) -> Invalid:
    return Invalid(422, "Invalid", "too large", {"causes": [{"field": name} for name in names]})


class TestWrite:
    OLD = vmi("Scheduled", status={"volumeStatus": [{"name": "a", "target": ""}]})
    NEW = vmi("Running", status={"volumeStatus": [{"name": "a", "target": "", "size": 2**70}]})

    def write(self, *answers):
        made = world(None, None)
        made.parts.api = Api(*answers)
        drive(write_status(self.OLD, self.NEW, made.parts))
        return made

    def test_the_watch_must_show_it_first(self):
        made = self.write()
        assert not made.parts.expectations.satisfied(KEY)

    def test_a_refused_field_does_not_hold_the_phase_up(self):
        made = self.write(refusal("status.volumeStatus[0].size"))
        assert [one["phase"] for one in made.parts.api.written] == ["Running", "Running"]
        assert made.parts.api.written[1]["volumeStatus"] == [{"name": "a", "target": ""}]
        assert made.calls == ["event:Warning:StatusFieldRefused"]
        assert self.NEW["status"]["volumeStatus"][0]["size"] == 2**70

    def test_a_refused_change_goes_back(self):
        assert self.write(refusal("status.phase")).parts.api.written[1]["phase"] == "Scheduled"

    @pytest.mark.parametrize("error", [Conflict(409, "Conflict", "x"), refusal(), refusal("spec.domain")])
    def test_other_refusals_are_for_the_next_pass(self, error):
        made = world(None, None)
        made.parts.api = Api(error)
        with pytest.raises(type(error)):
            drive(write_status(self.OLD, self.NEW, made.parts))
        assert len(made.parts.api.written) == 1
        assert made.parts.expectations.satisfied(KEY)

    @given(st.lists(st.text(max_size=20)))
    def test_a_server_may_name_any_field(self, names):
        made = world(None, None)
        made.parts.api = Api(refusal(*("status" + name for name in names)))
        try:
            drive(write_status(self.OLD, self.NEW, made.parts))
        except Invalid:
            assert len(made.parts.api.written) == 1
        else:
            assert len(made.parts.api.written) == 2


class TestFields:
    def test_the_guests_system(self):
        one = vmi()
        about = domain()
        about.raw["Status"]["OSInfo"] = {"Name": "Debian", "VersionId": "13", "Id": "debian"}
        fields.update_guest_os(one, about)
        assert one["status"]["guestOSInfo"] == {"name": "Debian", "versionId": "13", "id": "debian"}

    def test_a_guest_cannot_fill_the_status(self):
        one = vmi()
        about = domain()
        about.raw["Status"]["OSInfo"] = {"Name": "x" * 100_000, "Version": {"a": "y" * 100_000}}
        fields.update_guest_os(one, about)
        told = one["status"]["guestOSInfo"]
        assert {name: len(value) for name, value in told.items()} == {"name": 256, "version": 256}
        about.raw["Status"]["OSInfo"]["Name"] += "x"
        before = copy_of(one)
        fields.update_guest_os(one, about)
        assert one == before, "it is known already"

    def test_a_system_that_is_not_told_stays(self):
        one = vmi(status={"guestOSInfo": {"name": "Debian"}})
        fields.update_guest_os(one, domain())
        assert one["status"]["guestOSInfo"] == {"name": "Debian"}

    @pytest.mark.parametrize(("told", "after"), [("frozen", "frozen"), ("thawed", None), ("", "before")])
    def test_file_systems_that_stand_still(self, told, after):
        one = vmi(status={"fsFreezeStatus": "before"})
        about = domain()
        about.raw["Status"]["FSFreezeStatus"] = {"Status": told}
        fields.update_freeze(one, about)
        assert one["status"].get("fsFreezeStatus") == after

    def test_machine_and_memory(self):
        one = vmi(status={"memory": {"guestRequested": "2Gi"}})
        about = domain(
            OS={"Type": {"Machine": "pc-q35-9.2"}}, CurrentMemory={"Value": 1048576, "Unit": "KiB"}
        )
        fields.update_machine(one, about)
        fields.update_memory(one, about)
        assert one["status"]["machine"] == {"type": "pc-q35-9.2"}
        assert one["status"]["memory"] == {"guestRequested": "2Gi", "guestCurrent": "1Gi"}

    @pytest.mark.parametrize(
        ("value", "unit", "text"),
        [(5, "KB", "5k"), (2, "GiB", "2Gi"), (3, "bytes", "3"), (1, "acres", None), (2**63, "KiB", None)],
    )
    def test_sizes_of_libvirt(self, value, unit, text):
        assert fields.libvirt_quantity(value, unit) == text

    def test_sizes_of_images_of_a_vm_that_runs(self):
        spec = {
            "volumes": [{"name": "cm", "configMap": {}}],
            "domain": {"devices": {"disks": [{"name": "cm"}]}},
        }
        one = vmi(spec=spec, status={"volumeStatus": [{"name": "cm"}]})
        made = world(None, None)
        asked = []

        async def size(_vmi, path):
            asked.append(path)
            return 4096

        made.parts.runtime.file_size = size
        drive(fields.update_fields(one, None, made.parts))
        assert one["status"]["volumeStatus"] == [{"name": "cm", "size": 4096, "target": ""}]
        assert asked == ["/var/run/kubevirt-private/config-map-disks/cm.iso"]

    def test_what_cannot_be_found_out_is_left_out(self):
        async def fail(*_):
            raise OSError("gone")

        made = world(None, None)
        made.parts.runtime.file_size = made.parts.runtime.selinux_context = fail
        one = vmi()
        drive(fields.update_fields(one, None, made.parts))
        assert one == vmi()

    def test_images_that_the_launcher_made(self):
        volumes = [
            {"name": "init", "cloudInitNoCloud": {}},
            {"name": "cm", "configMap": {}},
            {"name": "sa", "serviceAccount": {}},
            {"name": "disk", "containerDisk": {}},
        ]
        disks = [{"name": one["name"]} for one in volumes]
        one = vmi(spec={"volumes": volumes, "domain": {"devices": {"disks": disks}}})
        assert dict(fields.iso_paths(one)) == {
            "init": "/var/run/kubevirt-ephemeral-disks/cloud-init-data/default/testvmi/noCloud.iso",
            "cm": "/var/run/kubevirt-private/config-map-disks/cm.iso",
            "sa": "/var/run/kubevirt-private/service-account-disk/service-account.iso",
        }


class TestVolumes:
    def update(self, status, about=None, spec=None, mounted=False):
        one = vmi(spec=spec, status={"volumeStatus": status})
        made = world(None, None)
        made.parts.hotplug.is_mounted = lambda *_: mounted
        update_volumes(one, about, made.parts)
        return one["status"]["volumeStatus"], made.calls

    def test_targets_by_alias_and_sorted(self):
        disks = [
            {"Alias": {"Name": "b"}, "Source": {"File": "/x"}, "Target": {"Device": "vda"}},
            {"Alias": {"Name": "a"}, "Source": {}, "Target": {"Device": "sda"}},
        ]
        after, calls = self.update([{"name": "b"}, {"name": "a"}], domain(Devices={"Disks": disks}))
        assert after == [{"name": "a", "target": ""}, {"name": "b", "target": "vda"}]
        assert calls == []

    def test_a_plugged_volume_on_its_way(self):
        status = [{"name": "hp", "phase": "AttachedToNode", "hotplugVolume": {}}]
        after, calls = self.update(status, spec={"volumes": [{"name": "hp"}]}, mounted=True)
        assert after[0]["phase"] == "MountedToPod"
        assert calls == ["queue.AddAfter:1s", "event:Normal:VolumeMountedToPod"]

    def test_one_that_is_not_wanted_any_more(self):
        after, _ = self.update([{"name": "hp", "phase": "Ready", "hotplugVolume": {}}])
        assert after[0]["phase"] == "UnMountedFromPod"

    def test_a_memory_dump_that_failed(self):
        status = [
            {"name": "md", "phase": "MemoryDumpInProgress", "memoryDumpVolume": {"targetFileName": "f"}}
        ]
        told = {"FileName": "f", "EndTimestamp": "e", "Failed": True, "FailureReason": "no room"}
        (found,), _ = self.update(status, domain(metadata={"MemoryDump": told}))
        assert found["phase"] == "MemoryDumpFailed"
        assert "no room" in found["message"]

    def test_a_dump_that_has_not_begun_is_waited_for(self):
        status = [
            {"name": "md", "phase": "MemoryDumpInProgress", "memoryDumpVolume": {"targetFileName": "f"}}
        ]
        (found,), calls = self.update(status, domain(metadata={"MemoryDump": {"FileName": "older"}}))
        assert found["phase"] == "MemoryDumpInProgress"
        assert calls == []

    def test_one_in_the_guest_is_ready(self):
        disks = [{"Alias": {"Name": "hp"}, "Source": {"Dev": "/x"}, "Target": {"Device": "sda"}}]
        status = [{"name": "hp", "phase": "MountedToPod", "hotplugVolume": {}}]
        (found,), calls = self.update(status, domain(Devices={"Disks": disks}))
        assert found["phase"] == "Ready"
        assert calls == ["event:Normal:VolumeReady"]

    def test_a_memory_dump(self):
        status = [{"name": "md", "phase": "MountedToPod", "memoryDumpVolume": {}}]
        (begun,), _ = self.update(status)
        assert begun["phase"] == "MemoryDumpInProgress"
        name = begun["memoryDumpVolume"]["targetFileName"]
        assert name == "testvmi-md-20240601-120000.memory.dump"
        told = {"FileName": name, "StartTimestamp": "s", "EndTimestamp": "e", "Completed": True}
        (done,), _ = self.update([begun], domain(metadata={"MemoryDump": told}))
        assert done["phase"] == "MemoryDumpCompleted"
        assert done["memoryDumpVolume"]["endTimestamp"] == "e"
        assert "endTimestamp" not in begun["memoryDumpVolume"]


CONTAINER_DISK = {"volumes": [{"name": "cd", "containerDisk": {"image": "i"}}]}


class TestChecksums:
    def update(self, one, gates):
        made = world(None, None)
        made.parts.config = ClusterConfig.from_mapping({"developerConfiguration": gates})

        async def sums(_vmi):
            return {"cd": 2**32 - 1}

        made.parts.disks.checksums = sums
        drive(checksums.update_checksums(one, None, made.parts))
        return one["status"]["volumeStatus"][0]

    def test_a_sum_is_a_number_of_32_bits(self):
        one = vmi(spec=CONTAINER_DISK, status={"volumeStatus": [{"name": "cd"}]})
        found = self.update(one, {"disabledFeatureGates": ["ImageVolume"]})
        assert found["containerDiskVolume"] == {"checksum": 4294967295}

    def test_boot_files_have_theirs(self):
        boot = {"kernelBoot": {"container": {"kernelPath": "/k", "initrdPath": "/i"}}}
        one = vmi(spec={"domain": {"firmware": boot}})
        made = world(None, None)
        made.parts.config = ClusterConfig(disabled_feature_gates=frozenset({"ImageVolume"}))
        asked = []

        async def sums(_vmi):
            asked.append(1)
            return {checksums.KERNEL: 1, checksums.INITRD: 2}

        made.parts.disks.checksums = sums
        for _ in range(2):
            drive(checksums.update_checksums(one, None, made.parts))
        found = {"kernelInfo": {"checksum": 1}, "initrdInfo": {"checksum": 2}}
        assert one["status"]["kernelBootStatus"] == found
        assert asked == [1]

    def test_none_where_images_are_volumes(self):
        one = vmi(spec=CONTAINER_DISK, status={"volumeStatus": [{"name": "cd"}]})
        assert self.update(one, {}) == {"name": "cd"}
