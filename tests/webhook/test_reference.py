"""The reference's answers, asked for by real AdmissionReviews."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvnode.webhook.settings import Settings
from tests.webhook.ask import REFERENCE, comparable, mutated, refused, settings, vm, with_same_uuid

CASES = Path(__file__).parents[1] / "reference_cases"


def committed(group: str) -> list[Any]:
    files = sorted((CASES / group).glob("*.yaml"))
    assert len(files) >= 12
    return [pytest.param(yaml.safe_load(file.read_text()), id=file.stem) for file in files]


@pytest.mark.parametrize("case", committed("defaults"))
def test_defaults(case: dict[str, Any]) -> None:
    got = mutated(case["vmi"], known=settings(arch=case["architecture"]))
    assert with_same_uuid(comparable(got), case["expect"]) == comparable(case["expect"])


@pytest.mark.parametrize("case", committed("validate"))
def test_validate(case: dict[str, Any]) -> None:
    fields = refused(case["vmi"], known=settings(arch=case["architecture"]))
    assert sorted(set(fields)) == case["fields"]


@pytest.mark.parametrize("case", committed("validate"))
def test_as_the_template_of_a_machine(case: dict[str, Any]) -> None:
    check_template(case["vmi"], settings(arch=case["architecture"]))


def check_template(vmi: dict[str, Any], known: Settings) -> None:
    """A machine is refused for what its instances would be, by the field in its template, and for nothing else."""
    one = vm()
    one["spec"]["template"] = {name: vmi[name] for name in ("metadata", "spec") if name in vmi}
    told = refused(one, known=known, kind="VirtualMachine")
    assert all(field.startswith("spec.template.") for field in told)
    # Of its own a machine is refused a maxGuest that memory cannot be plugged up to.
    assert refused(vmi, known=known) or set(told) <= {"spec.template.spec.domain.memory.guest"}
    # What the machine's defaults make of it is refused, or let through, alike.
    made = mutated(one, None, known, kind="VirtualMachine")
    assert bool(refused(made, known=known, kind="VirtualMachine")) == bool(told)


def whole(group: str) -> list[dict[str, Any]]:
    with lzma.open(REFERENCE / f"{group}.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the whole reference set is not here")
def test_every_case_of_the_whole_set() -> None:
    config = json.loads((REFERENCE / "config.json").read_text())
    known = {arch: settings(config, arch) for arch in ("amd64", "arm64", "s390x")}
    for case in whole("defaults"):
        got = mutated(case["vmi"], known=known[case["arch"]])
        assert with_same_uuid(comparable(got), case["expect"]) == comparable(case["expect"]), case["id"]
    for case in whole("validate"):
        fields = refused(case["vmi"], known=known[case["arch"]])
        assert bool(fields) != case["valid"], case["id"]
        assert set(case["fields"]) <= set(fields), case["id"]
        check_template(case["vmi"], known[case["arch"]])
