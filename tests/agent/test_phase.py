"""Phases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.agent.parts import LauncherState
from kvnode.agent.phase import phase_of_domain, phase_without_domain
from kvnode.api.phases import Phase
from tests.agent.build import domain, vmi

TARGET = {"kubevirt.io/create-migration-target": "true"}
PHASES = [phase.value for phase in Phase]


@pytest.mark.parametrize(
    ("status", "reason", "phase"),
    [
        ("Running", "Unknown", "Running"),
        ("Blocked", "", "Running"),
        ("PMSuspended", "", "Running"),
        ("Paused", "IOError", "Running"),
        ("Paused", "PostcopyFailed", "Failed"),
        ("Shutoff", "Shutdown", "Succeeded"),
        ("Shutoff", "Crashed", "Failed"),
        ("Crashed", "Panicked", "Failed"),
        ("Shutoff", "Migrated", "Scheduled"),
        ("ShuttingDown", "User", "Scheduled"),
        ("NoState", "", "Scheduled"),
    ],
)
def test_a_domains_state_decides(status, reason, phase):
    assert phase_of_domain(vmi("Scheduled"), domain(status, reason)) == phase


class TestDestroyed:
    def test_a_guest_that_could_have_shut_down_was_killed(self):
        assert phase_of_domain(vmi(), domain("Shutoff", "Destroyed", Features={"ACPI": {}})) == "Failed"

    def test_without_grace_it_ended_as_it_was_told(self):
        about = domain("Shutoff", "Destroyed", Features={"ACPI": {}})
        assert phase_of_domain(vmi(spec={"terminationGracePeriodSeconds": 0}), about) == "Succeeded"

    def test_without_acpi_there_is_no_other_way(self):
        assert phase_of_domain(vmi(), domain("Shutoff", "Destroyed")) == "Succeeded"

    def test_after_a_broken_post_copy_it_never_succeeded(self):
        lost = vmi(status={"migrationState": {"failed": True, "mode": "PostCopy"}})
        assert phase_of_domain(lost, domain("Shutoff", "Destroyed")) == "Failed"


class TestWithoutDomain:
    def test_a_running_vmi_failed(self):
        assert phase_without_domain(vmi(), None) == "Failed"

    @pytest.mark.parametrize(
        ("launcher", "phase"),
        [("READY", "Scheduled"), ("STARTING", "Scheduled"), ("UNRESPONSIVE", "Failed")],
    )
    def test_a_scheduled_one_goes_with_its_launcher(self, launcher, phase):
        assert phase_without_domain(vmi("Scheduled"), LauncherState[launcher]) == phase

    def test_a_migration_target_waits_for_its_source(self):
        assert phase_without_domain(vmi(annotations=TARGET), None) == "WaitingForSync"

    def test_a_target_that_failed_stays(self):
        failed = vmi(annotations=TARGET, status={"migrationState": {"failed": True}})
        assert phase_without_domain(failed, None) == "Running"

    @given(st.sampled_from(["Succeeded", "Failed"]), st.sampled_from([None, *LauncherState]))
    def test_an_ended_one_has_ended(self, phase, launcher):
        assert phase_without_domain(vmi(phase), launcher) == phase


@given(st.sampled_from(PHASES), st.text(max_size=12), st.text(max_size=12))
def test_a_launcher_can_say_anything_and_gets_a_phase(phase, status, reason):
    assert phase_of_domain(vmi(phase), domain(status, reason)) in PHASES
