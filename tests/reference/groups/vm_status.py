"""``vm_status``: the word for people in a VirtualMachine's status."""

from __future__ import annotations

from tests.reference.common import Case, Outcome
from tests.reference.vmcases import VMScene, wanted


def run(case: Case) -> Outcome:
    """Run one row."""
    row = case.data
    scene = VMScene(row["input"])
    if row["via"] != "Execute":
        return Outcome.of(row["printableStatus"], scene.printable())
    got = scene.reconcile()
    tried = [
        one["payload"]["status"]
        for one in got.get("actions", ())
        if one.get("subresource") == "status" and one["verb"] == "update"
    ]
    got["printableStatus"] = tried[-1].get("printableStatus") if tried else None
    return Outcome.of({**wanted(row), "printableStatus": row["printableStatus"]}, got)
