"""Cases of the VirtualMachine controller."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.controller.vm import VirtualMachineController
from kvnode.controller.vm.printable import printable_status
from kvnode.controller.vm.run import Run, deletion_marker
from kvnode.kube import resources
from kvnode.kube.objects import Object, key_of
from tests.reference.controllers import Scene, bare, plain, with_times

SAME_SPEC = "<equal to {spec: input.vm.spec}>"
WRITTEN = "<see output.vmStatusWritten>"
_HOLLOW_METADATA = ("datavolumes", "pods", "persistentvolumeclaims")
_HOLLOW_TYPE = (*_HOLLOW_METADATA, "controllerrevisions")


class VMScene(Scene):
    """A VM, its VMI and what belongs to them."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
        state = with_times(given)
        self.vm: Object = state["vm"] or {}
        self.vmi: Object | None = state.get("vmi")
        self.key = key_of(self.vm) or "default/testvm"
        if self.vm:
            self._add_vm(state)
        if self.vmi is not None:
            self.add(resources.VIRTUAL_MACHINE_INSTANCES, self.vmi)
        for revision in state.get("controllerRevisions") or ():
            self.add(resources.CONTROLLER_REVISIONS, self._revision(revision))
        self.controller = VirtualMachineController(self.world)
        self._expect(state.get("pendingExpectations") or {})

    def _add_vm(self, state: dict[str, Any]) -> None:
        self.add(resources.VIRTUAL_MACHINES, self.vm, on_server=not state.get("vmMissingOnServer"))
        if uid := state.get("vmUIDOnServer"):
            other = copy.deepcopy(self.vm)
            other["metadata"]["uid"] = uid
            self.server.put(resources.VIRTUAL_MACHINES, other)

    def _revision(self, told: dict[str, Any]) -> Object:
        data = told["data"]
        owner = {"kind": "VirtualMachine", "uid": self.vm["metadata"]["uid"], "controller": True}
        return {
            "metadata": {
                "name": told["name"],
                "namespace": self.vm["metadata"]["namespace"],
                "ownerReferences": [owner],
            },
            "revision": told["revision"],
            "data": {"spec": self.vm["spec"]} if data == SAME_SPEC else data,
        }

    def _expect(self, pending: dict[str, int]) -> None:
        if count := pending.get("vmiCreations"):
            self.controller.expectations.expect_creations(self.key, count)
        if pending.get("vmiDeletions"):
            marker = deletion_marker(self.vmi) if self.vmi else "gone"
            self.controller.expectations.expect_deletions(self.key, [marker])
        if count := pending.get("dataVolumeCreations"):
            self.controller.data_volume_expectations.expect_creations(self.key, count)

    def printable(self) -> str:
        """The printable status of the state as it is."""
        return printable_status(
            Run(
                world=self.world,
                settings=self.world.settings(),
                key=self.key,
                original=self.vm,
                vm=self.vm,
                vmi=self.vmi,
                expectations=self.controller.expectations,
                data_volume_expectations=self.controller.data_volume_expectations,
            )
        )

    def reconcile(self) -> dict[str, Any]:
        """One pass; the answer is its output as the cases tell it."""
        calls = len(self.server.calls)
        seen = len(self.events.seen)
        self.delays.seen.clear()
        queue = self.queue(self.controller.reconcile, self.key)
        made = self.server.calls[calls:]
        output = {
            "actions": [self._told_call(call) for call in made],
            "events": self.events.seen[seen:],
            "queue": queue,
            "expectationsAfter": self._expected(),
            **self._after(made),
        }
        told: dict[str, Any] = self.told(output)
        return told

    def _expected(self) -> dict[str, int]:
        adds, dels = self.controller.expectations.pending(self.key)
        volumes, _ = self.controller.data_volume_expectations.pending(self.key)
        return {"dataVolumeCreations": volumes, "vmiCreations": adds, "vmiDeletions": dels}

    def _told_call(self, call: dict[str, Any]) -> dict[str, Any]:
        told = copy.deepcopy(call)
        payload = told.get("payload")
        if call["verb"] == "update":
            parts = ("status",) if call["subresource"] else ("metadata", "spec")
            told["payload"] = {part: payload.get(part) for part in parts}
        elif call["verb"] == "create":
            for name in ("apiVersion", "kind") if call["resource"] in _HOLLOW_TYPE else ():
                payload.pop(name, None)
            if call["resource"] in _HOLLOW_METADATA:
                payload["metadata"].pop("namespace", None)
        return told

    def _after(self, calls: list[dict[str, Any]]) -> dict[str, Any]:
        written = [
            call["payload"].get("status")
            for call in calls
            if call["verb"] == "update" and call["subresource"] and "error" not in call
        ]
        vm = self.server.peek(resources.VIRTUAL_MACHINES, self.key)
        vmi = self.server.peek(resources.VIRTUAL_MACHINE_INSTANCES, self.key)
        return {
            "vmStatusWritten": written[-1] if written else None,
            "vmAfter": vm and self._vm_after(vm),
            "vmiAfter": vmi and _vmi_after(vmi),
        }

    def _vm_after(self, vm: Object) -> dict[str, Any]:
        meta, spec = vm["metadata"], vm["spec"]
        return {
            "annotations": meta.get("annotations"),
            "finalizers": meta.get("finalizers"),
            "runStrategy": spec.get("runStrategy"),
            "running": spec.get("running"),
            "specChanged": bare(spec) != bare(self.vm["spec"]),
            "status": vm.get("status"),
        }


def _vmi_after(vmi: Object) -> dict[str, Any]:
    meta = vmi["metadata"]
    return {
        "annotations": meta.get("annotations"),
        "deletionTimestampSet": bool(meta.get("deletionTimestamp")),
        "exists": True,
        "finalizers": meta.get("finalizers"),
        "ownerReferences": meta.get("ownerReferences"),
    }


def wanted(row: dict[str, Any]) -> dict[str, Any]:
    """A case's output with its references put in, without messages and nothings."""
    made: dict[str, Any] = bare(plain(expanded(row)))
    return made


def expanded(row: dict[str, Any]) -> dict[str, Any]:
    """A case's output with its references put in."""
    output: dict[str, Any] = copy.deepcopy(row["output"])
    for action in output["actions"]:
        match action.get("payload"):
            case "<see output.vmStatusWritten>":
                action["payload"] = {"status": output["vmStatusWritten"]}
            case "<see output.createdVMI>":
                action["payload"] = output["createdVMI"]
            case "<see output.createdControllerRevision>":
                revision = {**output["createdControllerRevision"]}
                revision.pop("dataIsExactlySpec", None)
                action["payload"] = revision
    after = output.get("vmAfter")
    if after and after.get("status") == "<equal to output.vmStatusWritten>":
        after["status"] = output["vmStatusWritten"]
    return output
