"""Who looks after a name, and what is done about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvnode.agent.ends import Ends
from kvnode.agent.errors import AgentError, IrrecoverableError, SecureBootError
from kvnode.agent.sync import Action, Subject, choose
from kvnode.kube.errors import Conflict
from tests.agent.build import CLEAN_UP, DELETE, DELETED, GRACE, domain, run, vmi, world
from tests.reference.groups.agent_sync import Api


class TestWhoseVmi:
    def test_a_vmi_that_the_watch_lacks_is_read(self):
        made = world(None, domain(), vmi_in_cluster_wide_store=vmi())
        assert run(made)[0] == "api.ReadVMI"
        assert "launcher.SyncVirtualMachine" in made.calls

    def test_no_guest_is_ended_while_the_api_server_is_silent(self):
        made = world(None, domain(), injected_errors=["api.ReadVMI: timed out"])
        with pytest.raises(AgentError, match="timed out"):
            run(made)
        assert made.calls == ["api.ReadVMI"]

    def test_one_that_is_gone_is_shut_down(self):
        assert run(world(None, domain(metadata=GRACE)))[1:3] == [
            "nodeHook.PreVMStop",
            "launcher.ShutdownVirtualMachine",
        ]

    def test_one_of_another_node_is_left_alone(self):
        elsewhere = vmi(labels={"kubevirt.io/nodeName": "other"}, status={"nodeName": "other"})
        assert run(world(elsewhere, domain())) == []

    def test_what_has_moved_away_is_deleted_here(self):
        elsewhere = vmi(labels={"kubevirt.io/nodeName": "other"}, status={"nodeName": "other"})
        assert run(world(elsewhere, domain("Shutoff", "Migrated"))) == DELETE

    def test_a_write_that_the_watch_has_not_shown_is_waited_for(self):
        made = world(vmi("Scheduled"), domain())
        run(made)
        made.calls.clear()
        assert run(made) == []

    def test_an_older_vm_of_the_name_is_cleaned_up_first(self):
        made = world(vmi("Scheduled"), domain(uid="old"), "unresponsive")
        assert run(made) == [*CLEAN_UP, "queue.AddAfter:5s"]
        assert made.domain is None

    def test_an_older_one_whose_launcher_starts_is_looked_at_again(self):
        assert run(world(vmi("Scheduled"), domain(uid="old"), "uninitialized")) == ["queue.AddAfter:1s"]

    def test_an_older_vm_that_lives_is_waited_for(self):
        assert run(world(vmi("Scheduled"), domain(uid="old"))) == []

    @pytest.mark.parametrize(
        "about", [domain("Paused", "StartingUp"), domain(metadata={"Migration": {"StartTimestamp": "x"}})]
    )
    def test_a_migration_has_others_to_look_after_it(self, about):
        assert run(world(vmi(), about)) == []

    def test_a_failed_migration_is_cleaned_up(self):
        moving = vmi("Failed", status={"migrationState": {"startTimestamp": DELETED}})
        assert run(world(moving, domain())) == CLEAN_UP


class TestChoice:
    @pytest.mark.parametrize(
        ("subject", "action"),
        [
            (Subject(vmi(), True, domain()), Action.UPDATE),
            (Subject(vmi(deletionTimestamp=DELETED), True, domain()), Action.SHUT_DOWN),
            (Subject(vmi(deletionTimestamp=DELETED), True, None), Action.DELETE),
            (Subject(vmi(), False, domain()), Action.SHUT_DOWN),
            (Subject(vmi("Succeeded"), True, domain()), Action.DELETE),
            (Subject(vmi(), True, domain("Shutoff")), Action.DELETE),
            (Subject(vmi(), True, domain("Paused", "PostcopyFailed")), Action.DESTROY),
            (
                Subject(vmi(), True, domain(metadata={"GracePeriod": {"MarkedForGracefulShutdown": True}})),
                Action.SHUT_DOWN,
            ),
        ],
    )
    def test_one_thing_is_done(self, subject, action):
        assert choose(subject, in_phase=True) is action

    def test_a_change_of_phase_is_written_first(self):
        assert choose(Subject(vmi("Scheduled"), True, domain()), in_phase=False) is Action.NOTHING


class TestStart:
    def test_all_is_prepared_before_the_launcher_is_called(self):
        assert run(world(vmi("Scheduled"), None)) == [
            "containerDisks.Ready",
            "containerDisks.MountAndVerify",
            "hotplug.Mount",
            "runtime.AdjustResources",
            "nodeHook.PreVMStart",
            "launcher.SyncVirtualMachine",
            "event:Normal:Created",
            "runtime.HandleHousekeeping",
            "api.UpdateVMI",
        ]

    def test_a_network_that_cannot_be_set_up_fails_the_vmi(self):
        spec = {
            "networks": [{"name": "default", "pod": {}}],
            "domain": {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}},
        }
        made = world(
            vmi("Scheduled", spec=spec), None, injected_errors=["net.Setup: no link"], note="critical"
        )
        with pytest.raises(AgentError, match="the pod's network: no link"):
            run(made)
        assert made.written["status"]["phase"] == "Failed"

    def test_missing_firmware_fails_the_vmi(self):
        made = world(
            vmi("Scheduled"), None, injected_errors=["launcher.SyncVirtualMachine: EFI OVMF rom missing"]
        )
        with pytest.raises(SecureBootError, match="bootloader"):
            run(made)
        assert made.written["status"]["phase"] == "Failed"

    def test_images_that_are_not_there_yet_are_come_back_to(self):
        made = world(vmi("Scheduled"), None, note="container disks not ready")
        assert run(made) == ["containerDisks.Ready", "queue.AddAfter:1s", "api.UpdateVMI"]

    def test_a_launcher_that_was_never_looked_for_comes_first(self):
        made = world(vmi("Scheduled"), None)
        made.parts.launchers.waiting_since = lambda _vmi: None
        assert run(made) == ["queue.AddRateLimited", "api.UpdateVMI"]

    def test_a_limit_that_cannot_be_raised_is_told_of(self):
        made = world(vmi("Scheduled"), None, injected_errors=["runtime.AdjustResources: not permitted"])
        with pytest.raises(AgentError, match="limits of the launcher: not permitted"):
            run(made)
        assert "launcher.SyncVirtualMachine" not in made.calls
        (synchronized,) = [
            one for one in made.written["status"]["conditions"] if one["type"] == "Synchronized"
        ]
        assert "not permitted" in synchronized["message"]

    def test_a_launcher_that_starts_is_waited_for(self):
        assert set(run(world(vmi("Scheduled"), None, "uninitialized"))) == {
            "queue.AddAfter:1s",
            "api.UpdateVMI",
        }

    def test_a_launcher_that_never_came_fails_the_vmi(self):
        made = world(vmi("Scheduled"), None, "unresponsive")
        assert run(made) == ["api.UpdateVMI", "event:Warning:Stopped"]
        assert made.written["status"]["phase"] == "Failed"


class TestRunning:
    def test_a_guest_that_came_up_is_told_of(self):
        made = world(vmi("Scheduled"), domain())
        assert run(made) == ["api.UpdateVMI", "event:Normal:Started", "nodeHook.PostVMStart"]
        assert made.written["status"]["phaseTransitionTimestamps"] == [
            {"phase": "Running", "phaseTransitionTimestamp": "2024-06-01T12:00:00Z"}
        ]

    def test_nothing_is_said_of_a_launcher_that_cannot_be_asked(self):
        assert run(world(vmi(), domain("Unknown"))) == []

    def test_the_vmi_of_the_watch_is_not_changed(self):
        one = vmi("Scheduled")
        run(world(one, domain()))
        assert one == vmi("Scheduled")

    def test_a_vmi_without_a_status_gets_one(self):
        made = world({**vmi(), "status": None}, domain())
        run(made)
        assert made.written["status"]["phase"] == "Running"

    def test_a_status_that_stays_is_not_written(self):
        made = world(vmi(), domain())
        run(made)
        again = world(made.written, domain())
        assert "api.UpdateVMI" not in run(again)

    def test_a_network_that_cannot_be_plugged_does_not_fail_it(self):
        spec = {
            "networks": [{"name": "net1", "multus": {"networkName": "nad"}}],
            "domain": {"devices": {"interfaces": [{"name": "net1", "bridge": {}}]}},
        }
        plugged = vmi(spec=spec, status={"interfaces": [{"name": "net1", "infoSource": "multus-status"}]})
        made = world(plugged, domain(), injected_errors=["net.Setup: x"], note="critical")
        with pytest.raises(AgentError):
            run(made)
        assert "launcher.SyncVirtualMachine" in made.calls
        assert made.written["status"]["phase"] == "Running"

    def test_failing_storage_is_tried_at_once_and_then_left_in_peace(self):
        made = world(vmi(), domain("Paused", "IOError"))
        assert "launcher.SyncVirtualMachine" in run(made)
        made.begin()
        assert run(made) == ["queue.AddAfter:10s", "api.UpdateVMI"]

    @pytest.mark.parametrize(("reason", "phase"), [("Shutdown", "Succeeded"), ("Crashed", "Failed")])
    def test_how_a_guest_ended_outlives_a_write_that_failed(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reason: str, phase: str
    ) -> None:
        made = world(vmi(), domain("Shutoff", reason))
        made.parts.ends = Ends(tmp_path)

        async def refuse(_api: Api, _old: object, _new: object) -> None:
            raise Conflict(409, "Conflict", "the object has changed")

        with monkeypatch.context() as patch:
            patch.setattr(Api, "write_status", refuse)
            with pytest.raises(Conflict):
                run(made)
        assert made.domain is None
        made.begin()
        made.parts.ends = Ends(tmp_path)  # as an agent that starts has it
        run(made)
        assert made.written["status"]["phase"] == phase
        assert list(tmp_path.iterdir()) == []

    def test_without_room_for_how_it_ended_the_status_comes_before_the_domain_goes(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """The launcher still has it when the write fails and the agent ends."""
        made = world(vmi(), domain("Shutoff", "Shutdown"))
        made.parts.ends = Ends(tmp_path)
        tmp_path.rmdir()

        async def refuse(_api: Api, _old: object, _new: object) -> None:
            raise Conflict(409, "Conflict", "the object has changed")

        with monkeypatch.context() as patch:
            patch.setattr(Api, "write_status", refuse)
            with pytest.raises(Conflict):
                run(made)
        assert made.domain is not None
        assert "launcher.DeleteVirtualMachine" not in made.calls
        made.begin()
        made.parts.ends = Ends(tmp_path)  # as an agent that starts, and knows nothing
        tmp_path.rmdir()
        calls = run(made)
        assert calls.count("api.UpdateVMI") == 1
        assert calls.index("api.UpdateVMI") < calls.index("launcher.DeleteVirtualMachine")
        assert made.written["status"]["phase"] == "Succeeded"
        assert made.domain is None

    def test_a_guest_that_is_lost_fails(self):
        made = world(vmi(), domain("Paused", "PostcopyFailed"))
        with pytest.raises(IrrecoverableError):
            run(made)
        assert "launcher.KillVirtualMachine" in made.calls
        assert made.written["status"]["phase"] == "Failed"


def sriov():
    spec = {
        "networks": [{"name": "sr", "multus": {"networkName": "nad"}}],
        "domain": {"devices": {"interfaces": [{"name": "sr", "sriov": {}}]}},
    }
    return vmi(spec=spec, status={"interfaces": [{"name": "sr", "infoSource": "multus-status"}]})


class TestPlugging:
    def test_sriov_devices_are_plugged_first(self):
        assert run(world(sriov(), domain()))[:3] == [
            "runtime.AdjustResources",
            "launcher.HotplugHostDevices",
            "hotplug.Mount",
        ]

    def test_a_failure_holds_nothing_up_and_is_not_repeated_at_once(self):
        made = world(sriov(), domain(), injected_errors=["launcher.HotplugHostDevices: no slot"])
        calls = list(run(made))
        assert "event:Warning:NicHotplug" in calls
        assert "launcher.SyncVirtualMachine" in calls
        made.begin()
        assert "launcher.HotplugHostDevices" not in run(made)

    def test_a_volume_that_is_not_there_yet_is_come_back_to(self):
        made = world(vmi(), domain(), injected_errors=["hotplug.Mount: waiting for it"])
        assert run(made)[:2] == ["hotplug.Mount", "queue.AddAfter:1s"]
        assert "launcher.SyncVirtualMachine" in made.calls

    def test_a_vm_does_not_start_without_its_plugged_volumes(self):
        volume = {"name": "hp", "persistentVolumeClaim": {"claimName": "c", "hotpluggable": True}}
        status = {"volumeStatus": [{"name": "hp", "phase": "Pending", "hotplugVolume": {}}]}
        made = world(vmi("Scheduled", spec={"volumes": [volume]}, status=status), None)
        run(made)
        assert "launcher.SyncVirtualMachine" not in made.calls

    def test_memory_is_dumped_where_a_volume_waits_for_it(self):
        dump = {"name": "md", "phase": "MemoryDumpInProgress", "memoryDumpVolume": {"targetFileName": "f"}}
        assert run(world(vmi(status={"volumeStatus": [dump]}), domain()))[:2] == [
            "hotplug.Mount",
            "launcher.VirtualMachineMemoryDump",
        ]

    @pytest.mark.parametrize(
        ("sev", "starts"),
        [
            ({}, True),
            ({"attestation": {}}, False),
            ({"attestation": {}, "session": "s", "dhCert": "c"}, True),
        ],
    )
    def test_a_confidential_guest_waits_for_its_owner(self, sev, starts):
        one = vmi("Scheduled", spec={"domain": {"devices": {}, "launchSecurity": {"sev": sev}}})
        assert ("launcher.SyncVirtualMachine" in run(world(one, None))) == starts
