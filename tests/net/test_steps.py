"""Set-ups that end half-way, at every step that they can."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from kvnode.net.cache import Progress, RecordedProgresses
from kvnode.net.errors import CriticalNetError, NetError
from kvnode.net.setup import setup
from tests.net.conftest import Lab
from tests.net.stepping import SteppedNamespace, Steps, dies_at

pytestmark = pytest.mark.integration

MASQUERADE = {"name": "default", "masquerade": {}, "ports": [{"port": 80}]}
BRIDGE = {"name": "default", "bridge": {}}
both = pytest.mark.parametrize("interface", [MASQUERADE, BRIDGE], ids=["masquerade", "bridge"])


def _settled(lab: Lab) -> dict[str, Any]:
    """A picture without what is chosen at random, and differs between labs."""
    picture = lab.picture()
    for name in ("k6t-eth0", "eth0-nic", "eth0-end", "tap0"):
        picture["links"].get(name, {}).pop("address", None)
    return picture


@both
def test_an_agent_that_is_killed_at_any_step(labs: Callable[..., Lab], interface: dict[str, Any]) -> None:
    undisturbed = labs()
    undisturbed.set_up(interface)
    expected = _settled(undisturbed)
    seen = set()
    for step in count():
        lab = labs()
        if not dies_at(step, lab.request(interface), lab.cache):
            break
        lab.progresses = RecordedProgresses(lab.cache)
        progress = lab.progresses.get("default")
        seen.add(progress)
        if progress is Progress.STARTED:
            half = lab.picture()
            with pytest.raises(
                CriticalNetError, match="network default: its set-up was begun and did not end"
            ):
                lab.set_up(interface)
            assert lab.picture() == half, f"step {step}: nothing more is done to it"
            if interface is BRIDGE:
                continue
            # The pod's own interface has not changed, so that another try would do.
            lab.pings(lab.pod, "10.244.0.1")
            lab.progresses.drop("default")
        lab.set_up(interface)
        assert _settled(lab) == expected, f"step {step}"
    assert seen == {Progress.PENDING, Progress.STARTED}
    assert step > 15


def _error_of(lab: Lab, interface: dict[str, Any], steps: Steps) -> NetError | None:
    namespace = SteppedNamespace(lab.pod.pid, steps)
    try:
        setup(lab.request(interface), lab.cache, lab.progresses, namespace)
    except NetError as error:
        return error
    return None


@both
def test_a_failure_at_any_step_is_undone(lab: Lab, interface: dict[str, Any]) -> None:
    before = lab.picture()

    def fail(name: str) -> None:
        raise NetError(f"{name}: played")

    for step in count():
        steps = Steps(step, fail)
        lab.progresses.drop("default")
        error = _error_of(lab, interface, steps)
        if error is None:
            assert not steps.is_over, "a failure is told"
            break
        assert "played" in str(error)
        is_begun = lab.progresses.get("default") is Progress.STARTED
        assert isinstance(error, CriticalNetError) is is_begun, "what has changed nothing may be tried again"
        assert lab.picture() == before, f"step {step}"
    assert step > 15
