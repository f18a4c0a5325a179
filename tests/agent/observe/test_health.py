"""Health and readiness, with their reasons."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvnode.agent.observe.health import IDLE, STUCK, Health


@dataclass
class Agent:
    """An agent in any state."""

    passes: dict[str, float] = field(default_factory=dict)
    idle: float = 0.0
    connected: bool = True
    plugins: bool = True
    watches: dict[str, str] = field(default_factory=dict)

    def health(self) -> Health:
        return Health(
            running=lambda: self.passes,
            since_round=lambda: self.idle,
            connected=lambda: self.connected,
            plugins=lambda: self.plugins,
            watches=lambda: self.watches,
        )


def test_one_that_works_is_well_and_ready() -> None:
    health = Agent({"a/b": STUCK - 1}, IDLE - 1).health()
    assert health.sick() == []
    assert health.not_ready() == []


def test_a_pass_without_end_is_a_sickness() -> None:
    health = Agent({"a/b": 1, "a/c": STUCK + 1}).health()
    assert health.sick() == ["the pass over a/c has not ended for 301 s"]
    assert health.not_ready() == []


def test_launchers_that_nobody_looks_after_are_one_too_once_they_are_looked_after() -> None:
    assert Agent(idle=IDLE + 1).health().sick() == ["no launcher has been looked after for 121 s"]
    assert Agent(idle=IDLE + 1, connected=False).health().sick() == []


def test_what_is_missing_at_the_start_is_told() -> None:
    assert Agent(connected=False, plugins=False).health().not_ready() == [
        "not all launchers of the node have been asked yet",
        "kubelet has not taken the device plugins yet",
    ]


def test_an_api_server_that_is_away_is_no_sickness_and_yet_told() -> None:
    health = Agent(connected=False, watches={"pods": "cannot be followed: no answer yet"}).health()
    assert health.sick() == []
    assert health.not_ready() == ["pods: cannot be followed: no answer yet"]
