"""Who is who, and what deploy/webhook asks the API server for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kvnode.api.errors import FieldError
from kvnode.kube.informer import Change
from kvnode.kube.store import entry_of
from kvnode.webhook.handlers import PATHS, Admission
from kvnode.webhook.run import Options, Webhooks
from kvnode.webhook.settings import Settings, user_names

KUBEVIRT = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt"}
DEPLOY = Path(__file__).parents[2] / "deploy" / "webhook"


def test_accounts_are_of_the_namespace_unless_they_name_another() -> None:
    assert user_names("kvnode", ("a", "other/b")) == {
        "system:serviceaccount:kvnode:a",
        "system:serviceaccount:other:b",
    }


def test_an_agent_is_a_component_whatever_the_others_are() -> None:
    webhooks = Webhooks(None, Options(accounts=("other/c",), agent="node"))  # type: ignore[arg-type]
    settings = webhooks._settings({}, "arm64")
    assert settings.agents == {"system:serviceaccount:kvnode:node"}
    assert settings.accounts == settings.agents | {"system:serviceaccount:other:c"}
    assert settings.architecture == "arm64"


def test_a_configuration_that_cannot_be_read_is_said_so() -> None:
    with pytest.raises(FieldError, match=r"^spec\.configuration\.cpuModel: must be a string"):
        Settings.of({"spec": {"configuration": {"cpuModel": 7}}}, "amd64")


@pytest.mark.parametrize(
    "kubevirt",
    [
        {"spec": True},
        {"spec": {"configuration": []}},
        {"metadata": 7},
        {"metadata": {"annotations": "x"}},
    ],
)
def test_what_is_no_kubevirt_object_leaves_the_settings(
    kubevirt: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    webhooks = Webhooks(None, Options())  # type: ignore[arg-type]
    admission = Admission(webhooks._settings({"metadata": {"annotations": {"a": "b"}}}, "arm64"))
    webhooks._take(admission, Change("kubevirt", None, entry_of({**KUBEVIRT, **kubevirt})))
    assert admission.settings.annotations == {"a": "b"}
    assert "the settings stay as they were" in caplog.text


def test_two_kinds_are_asked_about_and_refused_while_nobody_answers() -> None:
    configurations = list(yaml.safe_load_all((DEPLOY / "configurations.yaml").read_text()))
    webhooks = [webhook for one in configurations for webhook in one["webhooks"]]
    assert [webhook["clientConfig"]["service"]["path"] for webhook in webhooks] == list(PATHS)
    for webhook in webhooks:
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["sideEffects"] == "None"
        (rule,) = webhook["rules"]
        assert rule["apiGroups"] == ["kubevirt.io"]
        assert rule["operations"] == ["CREATE", "UPDATE"]
        assert rule["resources"] == ["virtualmachines", "virtualmachineinstances"]
