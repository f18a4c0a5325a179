"""What Hyper-V features bring with them."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.defaults import apply_defaults

ON = {"enabled": True}
OFF = {"enabled": False}


def defaulted(hyperv: dict[str, Any], **domain: Any) -> dict[str, Any]:
    vmi = {"spec": {"domain": {"features": {"hyperv": hyperv}, **domain}}}
    made: dict[str, Any] = apply_defaults(vmi, "amd64")["spec"]["domain"]
    return made


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ({"relaxed": {}}, {"relaxed": ON}),
        ({"synic": {}}, {"synic": ON, "vpindex": ON}),
        ({"evmcs": {}}, {"evmcs": ON, "vapic": ON}),
        ({"ipi": {}}, {"ipi": ON, "vpindex": ON}),
        ({"tlbflush": {"direct": {}}}, {"tlbflush": ON | {"direct": ON}, "vpindex": ON}),
        ({"synictimer": {}}, {"synictimer": ON, "synic": ON, "vpindex": ON}),
        ({"synictimer": OFF}, {"synictimer": OFF}),
        ({"synic": {}, "vpindex": {}}, {"synic": ON, "vpindex": ON}),
        ({"synic": {}, "vpindex": OFF}, {"synic": ON, "vpindex": OFF}),
        ({"ipi": {}, "vpindex": OFF, "synictimer": {}}, {"ipi": ON, "vpindex": OFF, "synictimer": ON}),
        ({"spinlocks": {}}, {"spinlocks": ON | {"spinlocks": 4096}}),
        ({"spinlocks": OFF}, {"spinlocks": OFF}),
        ({"spinlocks": {"spinlocks": 8191}}, {"spinlocks": ON | {"spinlocks": 8191}}),
    ],
)
def test_b36_features(written: dict[str, Any], made: dict[str, Any]) -> None:
    assert defaulted(written)["features"]["hyperv"] == made


def test_b36_passthrough_is_left_for_the_converter() -> None:
    vmi = {"spec": {"domain": {"features": {"hypervPassthrough": {}}}}}
    assert apply_defaults(vmi, "amd64")["spec"]["domain"]["features"]["hypervPassthrough"] == {}


@pytest.mark.parametrize(
    ("features", "made"),
    [
        (None, [{"name": "vmx", "policy": "require"}]),
        ([{"name": "svm"}], [{"name": "svm"}, {"name": "vmx", "policy": "require"}]),
        ([{"name": "vmx", "policy": "disable"}], [{"name": "vmx", "policy": "require"}]),
    ],
)
def test_evmcs_requires_vmx(features: Any, made: list[dict[str, str]]) -> None:
    cpu = {"cpu": {} if features is None else {"features": features}}
    assert defaulted({"evmcs": {}}, **cpu)["cpu"]["features"] == made


def test_evmcs_that_is_off_requires_nothing() -> None:
    made = defaulted({"evmcs": OFF})
    assert made["features"]["hyperv"] == {"evmcs": OFF}
    assert "features" not in made["cpu"]
