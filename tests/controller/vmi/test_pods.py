from __future__ import annotations

from typing import Any

import pytest

from kvnode.controller.vmi.pods import current_pod, image_trouble, is_failing, is_going_down, is_ready
from tests.controller.objects import deleting, pod


def with_container(name: str, **status: Any) -> dict[str, Any]:
    made = pod()
    made["status"]["containerStatuses"].append({"name": name, **status})
    return made


@pytest.mark.parametrize(
    ("obj", "ready"),
    [
        (pod(), True),
        (pod("Pending"), False),
        (pod("Succeeded"), False),
        (deleting(pod()), False),
        (with_container("volumeroot", ready=False, state={"running": {}}), False),
        (with_container("istio-proxy", ready=False, state={"running": {}}), True),
    ],
)
def test_ready(obj: dict[str, Any], ready: bool) -> None:
    assert is_ready(obj) is ready


def test_the_guests_readiness_does_not_count() -> None:
    obj = pod()
    obj["status"]["containerStatuses"][0]["ready"] = False
    assert is_ready(obj)


@pytest.mark.parametrize("code", [0, 1])
def test_ended_without_the_pod(code: int) -> None:
    obj = pod()
    obj["status"]["containerStatuses"][0]["state"] = {"terminated": {"exitCode": code}}
    assert is_going_down(obj)
    assert is_failing(obj) is bool(code)


def test_newest_pod_on_the_node() -> None:
    old, new = (
        pod(creationTimestamp="2030-01-01T00:00:00Z"),
        pod(creationTimestamp="2030-01-02T00:00:00Z", uid="new"),
    )
    new["spec"]["nodeName"] = "node02"
    assert current_pod([old, new], "") == new
    assert current_pod([new, old], "node01") == old
    assert current_pod([new], "node01") is None


def test_image_trouble() -> None:
    obj = pod("Pending")
    waiting = {"reason": "ErrImagePull", "message": "no such image"}
    obj["status"]["initContainerStatuses"] = [{"name": "x", "state": {"waiting": waiting}}]
    assert image_trouble(obj, ("ErrImagePull",)) == ("ErrImagePull", "no such image")
    assert image_trouble(pod("Pending"), ("ErrImagePull",)) is None
