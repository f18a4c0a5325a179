"""Conditions."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.agent.conditions import guest_agent, listing, migratable, state
from kvnode.agent.errors import AgentError, CriticalNetworkError, IrrecoverableError
from kvnode.spec.config import ClusterConfig
from tests.agent.build import NOW, domain, drive, vmi
from tests.reference.groups._agent import Clock, Recorder

NODE = migratable.Node(ClusterConfig(), "Westmere")


def live(one: dict[str, Any], node: migratable.Node = NODE) -> dict[str, Any]:
    migratable.set_migratable(one, node, Recorder([]))
    found = listing.find(one["status"], "LiveMigratable")
    assert found is not None
    return found


class TestListing:
    def test_what_is_empty_makes_no_difference(self):
        status = {"conditions": [{"type": "A", "status": "True", "lastProbeTime": None}]}
        listing.replace(status, {"type": "A", "status": "True"})
        assert status["conditions"] == [{"type": "A", "status": "True", "lastProbeTime": None}]

    def test_a_changed_one_comes_last(self):
        status = {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}
        listing.replace(status, {"type": "A", "status": "False"})
        assert [one["type"] for one in status["conditions"]] == ["B", "A"]

    def test_or_keeps_its_place(self):
        status = {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}
        listing.update(status, {"type": "A", "status": "False"})
        assert [one["status"] for one in status["conditions"]] == ["False", "True"]

    def test_a_list_that_another_holds_is_not_changed(self):
        held = [{"type": "A", "status": "True"}]
        status = {"conditions": held}
        listing.remove(status, "A")
        listing.add(status, {"type": "B", "status": "True"})
        assert held == [{"type": "A", "status": "True"}]


class TestMigratable:
    def test_a_plain_vmi_is(self):
        assert live(vmi()) == {"type": "LiveMigratable", "status": "True"}

    @pytest.mark.parametrize(
        ("domain_spec", "reason"),
        [
            ({"devices": {"hostDevices": [{"name": "h"}]}}, "HostDeviceNotLiveMigratable"),
            ({"launchSecurity": {"snp": {}}}, "SEVNotLiveMigratable"),
            ({"launchSecurity": {"tdx": {}}}, "TDXNotLiveMigratable"),
            ({"features": {"hypervPassthrough": {"enabled": True}}}, "HypervPassthroughNotLiveMigratable"),
            (
                {"features": {"hyperv": {"reenlightenment": {"enabled": True}}}},
                "NoTSCFrequencyNotLiveMigratable",
            ),
        ],
    )
    def test_what_keeps_it_here(self, domain_spec, reason):
        found = live(vmi(spec={"domain": {"devices": {}, **domain_spec}}))
        assert (found["status"], found["reason"]) == ("False", reason)

    def test_host_model_needs_a_model(self):
        one = vmi(spec={"domain": {"cpu": {"model": "host-model"}, "devices": {}}})
        assert live(one, migratable.Node(ClusterConfig(), ""))["reason"] == "CPUModeLiveMigratable"

    def test_bridge_on_the_pods_network_moves_only_where_that_is_allowed(self):
        spec = {
            "networks": [{"name": "default", "pod": {}}],
            "domain": {"devices": {"interfaces": [{"name": "default", "bridge": {}}]}},
        }
        assert live(vmi(spec=spec))["reason"] == "InterfaceNotLiveMigratable"
        allowed = {"kubevirt.io/allow-pod-bridge-network-live-migration": ""}
        assert live(vmi(spec=spec, annotations=allowed))["status"] == "True"

    def test_the_message_names_the_volume(self):
        one = vmi(spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]})
        found = live(one)
        assert found["reason"] == "DisksNotLiveMigratable"
        assert "volume data" in found["message"]
        assert one["status"]["migrationMethod"] == "BlockMigration"

    def test_all_obstacles_of_storage_are_told(self):
        one = vmi(spec={"domain": {"devices": {"hostDevices": [{}]}, "launchSecurity": {"sev": {}}}})
        live(one)
        storage = listing.find(one["status"], "StorageLiveMigratable")
        assert "HostDeviceNotLiveMigratable: " in storage["message"]
        assert "SEVNotLiveMigratable: " in storage["message"]

    def test_an_eviction_that_cannot_be_is_warned_of(self):
        events: list[str] = []
        one = vmi(spec={"evictionStrategy": "LiveMigrate", "domain": {"launchSecurity": {"sev": {}}}})
        migratable.set_migratable(one, NODE, Recorder(events))
        assert events == ["event:Warning:Migrated"]


class Launcher:
    def __init__(self, info):
        self._info = info

    async def client(self, _vmi):
        return self

    async def guest_info(self):
        return self._info


class TestGuestAgent:
    COMMANDS = tuple({"name": name, "enabled": True} for name in guest_agent.BASIC)

    def set(self, one, info, connected=True):
        drive(guest_agent.set_agent_connected(one, connected, Launcher(info), ("2.*", "(", "5.*"), Clock()))
        return [found["type"] for found in one["status"].get("conditions", [])]

    def test_a_good_one_is_connected(self):
        assert self.set(vmi(), {"supportedCommands": self.COMMANDS}) == ["AgentConnected"]

    def test_a_poor_one_is_that_as_well(self):
        info = {"supportedCommands": self.COMMANDS[1:]}
        assert self.set(vmi(), info) == ["AgentConnected", "AgentVersionNotSupported"]

    @pytest.mark.parametrize(("version", "good"), [("5.1", True), ("6.0", False), ("", False)])
    def test_one_without_commands_is_judged_by_its_version(self, version, good):
        flaw = guest_agent.flaw_of(vmi(), {"guestAgentVersion": version}, ("(", "5.*"))
        assert (flaw == "") == good

    def test_a_disconnected_one_is_not_asked(self):
        one = vmi(status={"conditions": [{"type": "AgentConnected", "status": "True"}]})
        assert self.set(one, None, connected=False) == []

    def test_keys_need_their_commands(self):
        credentials = [{"sshPublicKey": {"propagationMethod": {"qemuGuestAgent": {}}}}]
        one = vmi(spec={"accessCredentials": credentials})
        assert "public key" in guest_agent.flaw_of(one, {"supportedCommands": self.COMMANDS}, ())


class TestState:
    def test_paused_by_storage(self):
        one = vmi()
        state.set_paused(one, domain("Paused", "IOError"), "node01", NOW)
        assert one["status"]["conditions"][0]["reason"] == "PausedIOError"
        state.set_paused(one, domain("Running"), "node01", NOW)
        assert one["status"]["conditions"] == []

    def test_the_pause_at_a_migrations_end_is_none(self):
        one = vmi()
        state.set_paused(one, domain("Paused", "Migration"), "node01", NOW)
        assert "conditions" not in one["status"]

    def test_a_network_error_counts_from_wherever_it_came(self):
        one = vmi("Scheduled")
        error = AgentError("setup")
        error.__cause__ = CriticalNetworkError("no link")
        state.set_synchronized(one, error, NOW)
        assert one["status"]["phase"] == "Failed"

    def test_others_only_as_the_passes_own_result(self):
        one = vmi()
        error = AgentError("x")
        error.__cause__ = IrrecoverableError("y")
        state.set_synchronized(one, error, NOW)
        assert one["status"]["phase"] == "Running"

    def test_the_first_failure_stands_until_one_succeeds(self):
        one = vmi()
        state.set_synchronized(one, AgentError("first"), NOW)
        state.set_synchronized(one, AgentError("second"), NOW)
        assert [found["message"] for found in one["status"]["conditions"]] == ["first"]
        state.set_synchronized(one, None, NOW)
        assert one["status"]["conditions"] == []

    def test_a_launcher_that_says_too_much_is_cut_short(self):
        one, events = vmi(), []
        state.set_synchronized(one, AgentError("x" * 3_000_000), NOW)
        about = domain(metadata={"AccessCredential": {"Succeeded": False, "Message": "y" * 3_000_000}})
        for _ in range(2):
            state.set_access_credentials(one, about, Recorder(events), NOW)
        assert [len(found["message"]) for found in one["status"]["conditions"]] == [32_768] * 2
        assert len(events) == 1, "what was cut is known again"

    def test_emulated_guests_are_marked(self):
        one = vmi(spec={"architecture": "s390x"})
        state.set_software_emulation(one, domain(Type="qemu"), gate=True, host="amd64", now=NOW)
        assert one["status"]["conditions"][0]["reason"] == "CrossArchitectureEmulation"

    def test_credentials_are_told_of_once(self):
        one, events = vmi(), []
        about = domain(metadata={"AccessCredential": {"Succeeded": False, "Message": "no user"}})
        for _ in range(2):
            state.set_access_credentials(one, about, Recorder(events), NOW)
        assert events == ["event:Warning:AccessCredentialsSyncFailed"]
