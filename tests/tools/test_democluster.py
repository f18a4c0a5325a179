"""The demo on a cluster: what it leaves, and what a visitor sees."""

from __future__ import annotations

import io
import sys

import pytest

from tests.cluster.errors import ClusterError
from tools.democluster import __main__ as command
from tools.democluster import demo
from tools.democluster.terminal import Terminal


class FakeCluster:
    """A cluster that is up."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def keep(self) -> None:
        self.did.append("keep")

    def down(self) -> None:
        self.did.append("down")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """The cluster that the demo brings up; its steps do nothing."""
    made = FakeCluster()
    monkeypatch.setattr(demo, "clusters", list)
    monkeypatch.setattr(demo, "up", lambda *_args, **_options: made)
    for step in ("load_images", "deploy_all", "Kubectl"):
        monkeypatch.setattr(demo, step, lambda *_args: None)
    for step in ("_show", "_start", "_look", "_end", "_farewell"):
        monkeypatch.setattr(demo.Demo, step, lambda *_args: None)
    return made


def test_nothing_is_left(cluster: FakeCluster) -> None:
    assert command.main([]) == 0
    assert cluster.did == ["down"]


def test_unless_it_is_to_be_kept(cluster: FakeCluster) -> None:
    assert command.main(["--keep"]) == 0
    assert cluster.did == ["keep"]


@pytest.mark.parametrize("arguments", [[], ["--keep"]])
@pytest.mark.parametrize(("error", "code"), [(ClusterError("no room"), 1), (KeyboardInterrupt(), 130)])
def test_nothing_is_left_of_one_that_fails(
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    error: BaseException,
    code: int,
) -> None:
    def fail(_demo: demo.Demo) -> None:
        raise error

    monkeypatch.setattr(demo.Demo, "_start", fail)
    assert command.main(arguments) == code
    assert cluster.did == ["down"]


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "line"),
    [(Screen(), "\n\033[1m$ kubectl get vm\033[0m\n"), (io.StringIO(), "\n$ kubectl get vm\n")],
)
def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, line: str) -> None:
    monkeypatch.setattr(sys, "stdout", stream)
    Terminal().command("kubectl get vm")
    assert stream.getvalue() == line
