"""How a guest ends, and news of it that come late."""

from __future__ import annotations

import pytest

from kvnode.agent.domain import Domain
from kvnode.agent.errors import AgentError
from kvnode.rpc.errors import RpcError
from tests.agent.build import CLEAN_UP, DELETED, GRACE, deleted, domain, run, vmi, world
from tests.reference.groups.agent_sync import Launcher


class TestShutdown:
    ENDING = vmi(deletionTimestamp=DELETED, spec={"terminationGracePeriodSeconds": 30})

    def test_the_guest_is_asked_first(self):
        made = world(self.ENDING, domain(metadata=GRACE))
        assert run(made)[:4] == [
            "nodeHook.PreVMStop",
            "launcher.ShutdownVirtualMachine",
            "event:Normal:ShuttingDown",
            "queue.AddAfter:5s",
        ]

    def test_one_that_is_going_is_left_in_peace(self):
        made = world(self.ENDING, domain("ShuttingDown", metadata=GRACE))
        assert not any(call.startswith("launcher.") for call in run(made))

    def test_a_request_that_failed_is_repeated(self):
        errors = ["launcher.ShutdownVirtualMachine: busy"]
        with pytest.raises(AgentError, match="busy"):
            run(world(self.ENDING, domain(metadata=GRACE), injected_errors=errors))

    @pytest.mark.parametrize(("message", "ends"), [("EOF", True), ("busy", False)])
    def test_a_domain_that_the_launcher_took_with_it(self, message, ends):
        errors = [f"launcher.DeleteVirtualMachine: {message}"]
        made = world(vmi("Succeeded"), domain("Shutoff"), injected_errors=errors)
        if ends:
            run(made)
        else:
            with pytest.raises(AgentError):
                run(made)
        assert (made.domain is None) is ends
        assert "launcherClients.Close" in made.calls

    def test_and_killed_when_its_time_is_over(self):
        began = {
            "GracePeriod": {"DeletionGracePeriodSeconds": 30, "DeletionTimestamp": "2024-06-01T11:59:00Z"}
        }
        made = world(self.ENDING, domain(metadata=began))
        assert run(made)[1:3] == ["launcher.KillVirtualMachine", "event:Normal:Deleted"]

    def test_a_launcher_that_ends_under_the_call_has_done_it(self):
        errors = ["launcher.KillVirtualMachine: rpc error: code = Canceled desc = x"]
        made = world(vmi(deletionTimestamp=DELETED), domain(), injected_errors=errors)
        assert "event:Normal:Deleted" in run(made)

    def test_one_that_cannot_be_reached_has_not(self):
        errors = ["launcher.KillVirtualMachine: rpc error: code = Unavailable desc = x"]
        made = world(vmi(deletionTimestamp=DELETED), domain(), injected_errors=errors)
        with pytest.raises(RpcError):
            run(made)

    def test_a_dead_launcher_leaves_nothing_behind(self):
        made = world(vmi(deletionTimestamp=DELETED), deleted(domain("Shutoff", "Shutdown")), "unresponsive")
        assert run(made)[:2] == ["launcherClients.Close", CLEAN_UP[0]]
        assert made.domain is None

    def test_the_record_goes_last_and_stays_when_something_is_left(self):
        made = world(vmi("Succeeded"), domain("Shutoff"), injected_errors=["containerDisks.Unmount: busy"])
        with pytest.raises(AgentError, match="busy"):
            run(made)
        assert made.calls[-1] == "containerDisks.Unmount"
        assert made.domain is not None

    def test_files_of_the_network_do_not_hold_it_up(self):
        made = world(vmi("Succeeded"), domain("Shutoff"), injected_errors=["net.Teardown: busy"])
        assert run(made)[-1] == "launcherClients.Close"


class TestNewsThatAreLate:
    """The launcher's word at the moment counts, where what was heard last would end a guest."""

    @staticmethod
    def live(state: Domain | None, monkeypatch: pytest.MonkeyPatch) -> None:
        async def answer(_launcher: Launcher) -> object:
            return None if state is None else state.raw

        monkeypatch.setattr(Launcher, "domain", answer)

    @pytest.mark.parametrize("phase", ["Scheduled", "Running"])
    def test_a_domain_that_runs_by_now_is_not_taken_for_dead(
        self, monkeypatch: pytest.MonkeyPatch, phase: str
    ) -> None:
        made = world(vmi(phase), domain("Shutoff", "Unknown"))
        self.live(domain("Running"), monkeypatch)
        assert run(made) == []
        assert made.domain.is_alive, "which the next pass works with"

    @pytest.mark.parametrize("state", [domain("Shutoff", "Unknown"), None])
    def test_one_that_does_not_run_is_deleted(
        self, monkeypatch: pytest.MonkeyPatch, state: Domain | None
    ) -> None:
        made = world(vmi("Scheduled"), domain("Shutoff", "Unknown"))
        self.live(state, monkeypatch)
        assert "launcher.DeleteVirtualMachine" in run(made)

    def test_one_whose_start_nobody_told_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = world(vmi("Scheduled"), None)
        self.live(domain("Running"), monkeypatch)
        assert "launcher.SyncVirtualMachine" in run(made)
        assert made.domain.is_alive
