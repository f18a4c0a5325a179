"""Ask the webhooks as an API server does: bytes in, bytes out, patches applied."""

from __future__ import annotations

import base64
import copy
import os
import re
from pathlib import Path
from typing import Any

import orjson

from kvnode.webhook.handlers import MUTATE, VALIDATE, Admission
from kvnode.webhook.settings import ACCOUNTS, AGENT, Settings, user_names

USER = "alice"
CONTROLLER = "system:serviceaccount:kvnode:kvnode-controller"
AGENT_USER = f"system:serviceaccount:kvnode:{AGENT}"
PLURALS = {
    "VirtualMachineInstance": "virtualmachineinstances",
    "VirtualMachine": "virtualmachines",
}
REFERENCE = Path(os.environ.get("REFERENCE", Path(__file__).parents[2] / "../shared/parity"))


def settings(configuration: dict[str, Any] | None = None, arch: str = "amd64", **metadata: Any) -> Settings:
    """Settings of a cluster with kvnode's own accounts."""
    kubevirt = {"metadata": metadata, "spec": {"configuration": configuration or {}}}
    return Settings.of(kubevirt, arch, user_names("kvnode", ACCOUNTS), user_names("kvnode", (AGENT,)))


def review(
    new: Any, old: Any = None, *, user: str = USER, kind: str = "VirtualMachineInstance", node: str = ""
) -> dict[str, Any]:
    """An AdmissionReview as the API server sends it."""
    extra = {"authentication.kubernetes.io/node-name": [node]} if node else {}
    resource = {"group": "kubevirt.io", "version": "v1", "resource": PLURALS[kind]}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": "kubevirt.io", "version": "v1", "kind": kind},
            "resource": resource,
            "requestKind": {"group": "kubevirt.io", "version": "v1", "kind": kind},
            "requestResource": resource,
            "name": "testvmi",
            "namespace": "default",
            "operation": "CREATE" if old is None else "UPDATE",
            "userInfo": {"username": user, "groups": ["system:authenticated"], "extra": extra},
            "object": new,
            "oldObject": old,
            "dryRun": False,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    }


def answer(path: str, asked: dict[str, Any], known: Settings | None = None) -> dict[str, Any]:
    """The response to a review."""
    bytes_ = Admission(known or settings()).answer(path, orjson.dumps(asked))
    answered = orjson.loads(bytes_)
    assert answered["apiVersion"] == "admission.k8s.io/v1"
    assert answered["kind"] == "AdmissionReview"
    response: dict[str, Any] = answered["response"]
    assert response["uid"] == asked["request"]["uid"]
    return response


def mutated(new: dict[str, Any], old: Any = None, known: Settings | None = None, **who: Any) -> Any:
    """The object after the mutating webhook; it must be let through."""
    response = answer(MUTATE, review(new, old, **who), known)
    assert response["allowed"], response
    return patched(new, response)


def patched(new: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """What the API server makes of an object by the patch in a response."""
    made = copy.deepcopy(new)
    if "patch" not in response:
        return made
    assert response["patchType"] == "JSONPatch"
    for operation in orjson.loads(base64.b64decode(response["patch"])):
        *parents, last = operation["path"].removeprefix("/").split("/")
        at = made
        for name in parents:
            at = at[name]
        if operation["op"] == "remove":
            del at[last]
        else:
            assert operation["op"] == "add"
            at[last] = operation["value"]
    return made


def refused(new: Any, old: Any = None, known: Settings | None = None, **who: Any) -> list[str]:
    """Fields that the validating webhook names, none when it lets the object through."""
    response = answer(VALIDATE, review(new, old, **who), known)
    if response["allowed"]:
        assert "status" not in response
        return []
    status = response["status"]
    assert status["code"] == 422
    assert status["reason"] == "Invalid"
    details = status["details"]
    assert {name: details[name] for name in ("group", "name")} == {"group": "kubevirt.io", "name": "testvmi"}
    causes = details["causes"]
    assert all(cause["field"] for cause in causes)
    assert all(f"{cause['field']}: {cause['message']}" in status["message"] for cause in causes)
    # One of the whole object has no field.
    return [cause["field"] for cause in causes] or [""]


def comparable(vmi: Any) -> Any:
    """A defaulted VMI as the reference's answers are compared: what a webhook adds beside defaults is left out."""
    made = copy.deepcopy(vmi)
    made["metadata"]["finalizers"] = [
        one for one in made["metadata"].get("finalizers", []) if "foregroundDelete" not in one
    ]
    for name in ("phase", "phaseTransitionTimestamps"):
        made["status"].pop(name, None)
    return _without_empty(made)


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        members = {key: _without_empty(item) for key, item in value.items() if key != "creationTimestamp"}
        return {key: item for key, item in members.items() if item not in (None, "", {}, [])}
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return value


def with_same_uuid(got: Any, want: Any) -> Any:
    """`got` with the random UUID of `want`, if it has one of its own that is a UUID."""
    firmware = got["spec"]["domain"]["firmware"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", firmware["uuid"])
    firmware["uuid"] = want["spec"]["domain"]["firmware"]["uuid"]
    return got


def vmi(**spec: Any) -> dict[str, Any]:
    """A small VMI, as a user writes it."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "testvmi", "namespace": "default"},
        "spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}, **spec},
    }


def running(**spec: Any) -> dict[str, Any]:
    """A VMI that runs on node01, as it is stored."""
    made: dict[str, Any] = mutated(vmi(**spec))
    made["status"] |= {"phase": "Running", "nodeName": "node01"}
    made["metadata"]["labels"] = {"kubevirt.io/nodeName": "node01"}
    return made


def vm(strategy: str | None = "Always", **spec: Any) -> dict[str, Any]:
    """A small VM, as a user writes it."""
    chosen = {} if strategy is None else {"runStrategy": strategy}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "testvm", "namespace": "default"},
        "spec": {**chosen, "template": {"spec": vmi()["spec"]}, **spec},
    }
