"""Where a launcher's control groups are."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvnode.agent import cgroups
from kvnode.agent.cgroups import groups_of


def test_where_the_node_s_first_process_is_out_of_reach_the_agent_s_own_view_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, node = tmp_path / "own", tmp_path / "node"
    monkeypatch.setattr(cgroups, "OWN", own)
    monkeypatch.setattr(cgroups, "ROOT", node)
    for root in (own, node):
        (root / "devices").mkdir(parents=True)
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text("5:devices:/pod\n")
    assert groups_of(7, proc=tmp_path, root=node).folder("devices") == node / "devices/pod"
    node.rename(tmp_path / "away")
    assert groups_of(7, proc=tmp_path, root=node).folder("devices") == own / "devices/pod"
