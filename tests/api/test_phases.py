"""Phases and conditions."""

from kvnode.api.phases import ConditionType, Phase


def test_only_succeeded_and_failed_are_final() -> None:
    assert {phase for phase in Phase if phase.is_final} == {Phase.SUCCEEDED, Phase.FAILED}


def test_members_are_the_api_s_strings() -> None:
    assert Phase("Running") == "Running"
    assert ConditionType("AgentConnected") is ConditionType.AGENT_CONNECTED
