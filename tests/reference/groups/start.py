"""``start``: the VMI and the revision that a start makes; what waits for a restart."""

from __future__ import annotations

from typing import Any

from kvnode.controller.equality import bare
from kvnode.controller.vm.firmware import legacy_uuid
from tests.reference.common import Case, Outcome
from tests.reference.vmcases import VMScene, wanted


def run(case: Case) -> Outcome:
    """Run one row."""
    row = case.data
    if row["group"] == "legacy-uuid":
        return Outcome.of(row["output"], {"uuid": legacy_uuid(row["input"]["name"])})
    scene = VMScene(row["input"])
    got = scene.reconcile()
    if row["group"] == "start":
        got |= _made(got, row["input"]["vm"]["spec"])
    else:
        got |= _judged(got)
    return Outcome.of(wanted(row), bare(got))


def _made(got: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    created = {one["resource"]: one["payload"] for one in got.get("actions", ()) if one["verb"] == "create"}
    revision = created.get("controllerrevisions")
    if revision:
        exactly = bare(revision["data"]) == {"spec": bare(spec)}
        revision = {**revision, "dataIsExactlySpec": exactly}
    deleted = [
        one["name"]
        for one in got.get("actions", ())
        if one["verb"] == "delete" and one["resource"] == "controllerrevisions"
    ]
    return {
        "createdVMI": created.get("virtualmachineinstances"),
        "createdControllerRevision": revision,
        "deletedControllerRevisions": deleted,
    }


def _judged(got: dict[str, Any]) -> dict[str, Any]:
    tried = [
        one
        for one in got.get("actions", ())
        if one["verb"] == "update" and one.get("subresource") == "status"
    ]
    status = tried[-1]["payload"]["status"] if tried else {}
    required = [one["status"] for one in status.get("conditions") or () if one["type"] == "RestartRequired"]
    written = ("attempted" if tried[-1].get("error") else "written") if tried else "none"
    return {"restartRequired": required[0] if required else None, "statusWrite": written}
