"""Cases of the VirtualMachineInstance controller."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.controller.vmi import VirtualMachineInstanceController
from kvnode.kube import resources
from kvnode.kube.objects import Object, key_of
from tests.reference.apiserver import RANDOM
from tests.reference.controllers import Scene, bare, plain, with_times

STATUS_FIELDS = (
    "activePods",
    "interfaces",
    "launcherContainerImageVersion",
    "memory",
    "migrationState",
    "migrationTransport",
    "nodeName",
    "phaseTransitionTimestamps",
    "qosClass",
    "topologyHints",
    "volumeStatus",
)
SUMMARY_FIELDS = (
    "affinity",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "hostname",
    "nodeSelector",
    "readinessGates",
    "restartPolicy",
    "securityContext",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
)
SEEN = "<see output.vmiAfter>"


class VMIScene(Scene):
    """A VMI, its pods and its VM."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
        state = with_times(given)
        self.vmi: Object | None = state.get("vmi")
        self.key = key_of(self.vmi) if self.vmi else "default/testvmi"
        if self.vmi is not None:
            self.add(resources.VIRTUAL_MACHINE_INSTANCES, self.vmi)
        if vm := state.get("vm"):
            self.add(resources.VIRTUAL_MACHINES, {"metadata": vm})
        self.controller = VirtualMachineInstanceController(self.world)
        self._expect(state.get("pendingExpectations") or {})

    def _expect(self, pending: dict[str, int]) -> None:
        controller = self.controller
        for name, expectations in (
            ("podCreations", controller.pod_expectations),
            ("pvcCreations", controller.claim_expectations),
            ("vmiUpdates", controller.vmi_expectations),
        ):
            if count := pending.get(name):
                expectations.expect_creations(self.key, count)
        if count := pending.get("podDeletions"):
            keys = [f"default/deleted-{number}" for number in range(count)]
            controller.pod_expectations.expect_deletions(self.key, keys)

    def reconcile(self) -> dict[str, Any]:
        """One pass; the answer is its output as the cases tell it."""
        self.delays.seen.clear()
        seen, start = len(self.events.seen), len(self.server.calls)
        queue = self.queue(self.controller.reconcile, self.key)
        calls = self.server.calls[start:]
        after = self.server.peek(resources.VIRTUAL_MACHINE_INSTANCES, self.key)
        mine = [one for one in calls if one["resource"] == "virtualmachineinstances"]
        made = [
            one["payload"]["metadata"]
            for one in calls
            if one["resource"] == "pods" and one["verb"] == "create" and "error" not in one
        ]
        output = {
            "actions": [self._told_call(call) for call in calls],
            "events": self.events.seen[seen:],
            "queue": queue,
            "expectationsAfter": self._expected(),
            "podsCreated": [
                {"generateName": one["generateName"], "labels": one["labels"], "name": one.get("name")}
                for one in made
            ],
            "podsDeleted": sorted(
                one["name"] for one in calls if one["resource"] == "pods" and one["verb"] == "delete"
            ),
            "vmiAfter": after and self._after(after),
            "vmiWritten": any("error" not in one for one in mine),
        }
        told: dict[str, Any] = self.told(output)
        return told

    def _expected(self) -> dict[str, int]:
        adds, dels = self.controller.pod_expectations.pending(self.key)
        return {
            "podCreations": adds,
            "podDeletions": dels,
            "pvcCreations": self.controller.claim_expectations.pending(self.key)[0],
            "vmiUpdates": self.controller.vmi_expectations.pending(self.key)[0],
        }

    def _told_call(self, call: dict[str, Any]) -> dict[str, Any]:
        told = copy.deepcopy(call)
        payload = told.get("payload")
        if call["verb"] == "update":
            assert self.vmi is not None
            meta = payload["metadata"]
            told["payload"] = {
                "metadata": {name: meta.get(name) for name in ("annotations", "finalizers", "labels")},
                "specChanged": bare(payload["spec"]) != bare(self.vmi["spec"]),
                "status": payload.get("status") if "error" in call else SEEN,
            }
        elif call["verb"] == "create" and call["resource"] == "pods":
            payload["metadata"].pop("namespace", None)
            told["payload"] = {"metadata": payload["metadata"], "specSummary": _summary(payload["spec"])}
        return told

    def _after(self, vmi: Object) -> dict[str, Any]:
        assert self.vmi is not None
        meta, status = vmi["metadata"], vmi.get("status") or {}
        conditions = [
            {"reason": one.get("reason"), "status": one.get("status"), "type": one.get("type")}
            for one in status.get("conditions") or ()
        ]
        return {
            "phase": status.get("phase"),
            "conditions": conditions,
            "statusChanged": bare(status) != bare(self.vmi.get("status") or {}),
            **{name: meta.get(name) for name in ("annotations", "finalizers", "labels")},
            **{name: status.get(name) for name in STATUS_FIELDS},
        }


def _summary(spec: dict[str, Any]) -> dict[str, Any]:
    compute = next(one for one in spec["containers"] if one["name"] == "compute")
    command = list(compute["command"])
    if "--qemu-timeout" in command:
        at = command.index("--qemu-timeout") + 1
        assert 240 <= int(command[at].removesuffix("s")) < 360
        command[at] = RANDOM
    return {
        **{name: spec.get(name) for name in SUMMARY_FIELDS},
        "computeCommand": command,
        "computeResources": compute.get("resources"),
        "containers": [{"image": one["image"], "name": one["name"]} for one in spec["containers"]],
        "initContainers": [
            {"image": one["image"], "name": one["name"]} for one in spec.get("initContainers") or ()
        ],
        "volumes": sorted(one["name"] for one in spec.get("volumes") or ()),
    }


def wanted(row: dict[str, Any]) -> dict[str, Any]:
    """A case's output without messages and nothings; pods deleted in the order of their names."""
    output = copy.deepcopy(row["output"])
    output.pop("podDeletionOrderUnspecified", None)
    made: dict[str, Any] = bare(plain(output))
    return made
