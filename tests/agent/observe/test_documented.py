"""The table of metrics in docs/agent.md is what is exposed."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from kvnode.agent.observe import domainstats as tables
from tests.agent.observe.build import exposed, seen, source

PAGE = (Path(__file__).parents[3] / "docs/agent.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("### Metrics") : PAGE.index("KubeVirt's virt-handler has some")]


def expanded(name: str) -> list[str]:
    """``a_{b,c}`` as ``a_b`` and ``a_c``."""
    parts = [part.split(",") for part in re.split(r"[{}]", name)]
    return ["".join(one) for one in itertools.product(*parts)]


def documented() -> set[str]:
    """All names in the section, whole."""
    rows = [line.split("|")[1] for line in SECTION.splitlines() if line.startswith("| `")]
    names = [
        f"kubevirt_vmi_{one}"
        for row in rows
        for name in re.findall(r"`([^`]+)`", row)
        for one in expanded(name)
    ]
    text = SECTION[SECTION.index("And of the node and the agent") :]
    plain = [one for name in re.findall(r"`((?:kubevirt|process)_[^`]+)`", text) for one in expanded(name)]
    return {*names, *plain} - {"kubevirt_vmi_kubevirt_vmi_…"}


def all_exposed() -> set[str]:
    """All names that can be exposed."""
    every = [
        *(*tables.CPU, *tables.MEMORY, *tables.LOAD, *tables.NETWORK, *tables.STORAGE, *tables.VCPU),
        *(tables.VCPU_TIME, tables.AFFINITY, *tables.TRAFFIC.values(), *tables.FILESYSTEM),
    ]
    text = exposed([seen()], source(deprecated_machines=("pc-1.0",)))
    return {*(f"kubevirt_vmi_{one.name}" for one in every), *re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)}


def test_all_and_only_what_is_exposed_is_documented() -> None:
    assert documented() == all_exposed()
