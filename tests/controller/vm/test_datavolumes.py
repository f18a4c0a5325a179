from __future__ import annotations

from typing import Any

import pytest

from tests.controller.objects import call, calls, reasons, vm
from tests.reference.vmcases import VMScene

TEMPLATE = {"metadata": {"name": "dv1"}, "spec": {"source": {"pvc": {"name": "golden"}}, "storage": {}}}
CREATE = "create virtualmachineinstances"


def look(phase: str | None, strategy: str = "Always", **more: Any) -> dict[str, Any]:
    machine = vm(strategy, dataVolumeTemplates=[TEMPLATE])
    owner = {"kind": "VirtualMachine", "uid": "vm-uid", "controller": True}
    volume = {
        "metadata": {"name": "dv1", "namespace": "default", "uid": "dv-uid", "ownerReferences": [owner]},
        "status": {"phase": phase},
    }
    return VMScene({"vm": machine, "vmi": None, "dataVolumes": [volume] if phase else [], **more}).reconcile()


@pytest.mark.parametrize("phase", ["Succeeded", "WaitForFirstConsumer", "PendingPopulation"])
def test_ready_volumes_let_the_vm_start(phase: str) -> None:
    assert CREATE in calls(look(phase))


@pytest.mark.parametrize("phase", ["Pending", "ImportInProgress", "Failed", "Unknown"])
def test_other_volumes_are_waited_for(phase: str) -> None:
    output = look(phase)
    assert CREATE not in calls(output)
    assert reasons(output) == (["FailedDataVolumeImport"] if phase == "Failed" else [])


def test_missing_volumes_are_made() -> None:
    output = look(None)
    made = call(output, "create datavolumes")["payload"]
    assert made["metadata"]["labels"] == {"kubevirt.io/created-by": "vm-uid"}
    assert made["metadata"]["annotations"] == {"cdi.kubevirt.io/allowClaimAdoption": "true"}
    assert made["spec"]["source"]["pvc"] == {"name": "golden", "namespace": "default"}
    assert CREATE not in calls(output)
    assert reasons(output) == ["SourcePVCNotAvailabe", "SuccessfulDataVolumeCreate"]
    assert output["expectationsAfter"]["dataVolumeCreations"] == 1


def test_a_refused_volume_is_told() -> None:
    errors = [{"verb": "create", "resource": "datavolumes", "subresource": "", "error": "Forbidden"}]
    output = look(None, injectedErrors=errors)
    assert "FailedDataVolumeCreate" in reasons(output)
    assert output["expectationsAfter"]["dataVolumeCreations"] == 0
    assert output["queue"]["result"] == "rateLimited"
    assert output["vmStatusWritten"]["conditions"][-1]["reason"] == "FailedCreate"
