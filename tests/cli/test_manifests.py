"""Documents become virtual machines, or a line that says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvnode.cli import exitcodes
from kvnode.cli.errors import CliError
from kvnode.cli.manifests import MAX_BYTES, Manifest, read

VMI = "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: one}\nspec: {domain: {}}\n"
VM = """\
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: two, namespace: team, labels: {of: the-machine}}
spec:
  template:
    metadata: {name: ignored, labels: {of: the-instance}, annotations: {a: b}}
    spec: {domain: {}}
"""


@pytest.fixture
def parse(tmp_path: Path) -> Any:
    def run(text: str) -> list[Manifest]:
        path = tmp_path / "vm.yaml"
        path.write_text(text)
        return read([str(path)])[0]

    return run


@pytest.fixture
def refusal(parse: Any, tmp_path: Path) -> Any:
    def run(text: str) -> str:
        with pytest.raises(CliError) as caught:
            parse(text)
        return caught.value.line().removeprefix(f"{tmp_path}/")

    return run


def test_an_instance_is_itself(parse: Any) -> None:
    (manifest,) = parse(VMI)
    assert (manifest.kind, manifest.namespace, manifest.name) == ("VirtualMachineInstance", "default", "one")
    assert manifest.vmi is manifest.document
    assert manifest.path("spec.domain") == "spec.domain"


def test_a_machine_is_its_template_under_its_own_name(parse: Any) -> None:
    (manifest,) = parse(VM)
    assert manifest.vmi == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": "two",
            "namespace": "team",
            "labels": {"of": "the-instance"},
            "annotations": {"a": "b"},
        },
        "spec": {"domain": {}},
    }
    assert manifest.path("spec.domain.cpu") == "spec.template.spec.domain.cpu"
    assert manifest.path("metadata.labels") == "spec.template.metadata.labels"
    assert manifest.path("") == ""


def test_several_documents_are_told_apart(parse: Any, tmp_path: Path) -> None:
    sources = [m.source.removeprefix(f"{tmp_path}/") for m in parse(f"{VMI}---\n{VM}")]
    assert sources == ["vm.yaml, document 1", "vm.yaml, document 2"]


def test_a_list_is_opened(parse: Any, tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret}\n"
    text += "- {kind: VirtualMachineInstance, apiVersion: kubevirt.io/v1, metadata: {name: a, name: b}}\n"
    (manifest,) = parse(text)
    assert manifest.source == f"{tmp_path}/vm.yaml, items[1]"
    assert [d.path for d in manifest.duplicates] == ["items[1].metadata.name"]


def test_what_is_no_machine_is_left_out_by_name(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(f"apiVersion: v1\nkind: Service\n---\n{VMI}")
    found, others = read([str(path)])
    assert [m.name for m in found] == ["one"]
    assert [(o.source, o.what) for o in others] == [(f"{path}, document 1", "Service (v1)")]


def test_an_instance_without_a_type_is_taken(parse: Any) -> None:
    (manifest,) = parse("spec: {domain: {}}")
    assert manifest.kind == "VirtualMachineInstance"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "vm.yaml: no VirtualMachineInstance or VirtualMachine there: it is empty"),
        (
            "apiVersion: v1\nkind: Pod",
            "vm.yaml: no VirtualMachineInstance or VirtualMachine there: it holds Pod (v1)",
        ),
        ("[1]", "vm.yaml: is a list, not an object with apiVersion, kind, metadata and spec"),
        ("hello", "vm.yaml: is a single value, not an object with apiVersion, kind, metadata and spec"),
        ("a: 1", "vm.yaml: kind: must be there and be a text, such as VirtualMachineInstance"),
        ("kind: VirtualMachine", "vm.yaml: apiVersion: must be there and be a text, such as kubevirt.io/v1"),
        (VMI.replace("/v1", "/v7"), "vm.yaml: apiVersion: kubevirt.io/v7 is not known: write kubevirt.io/v1"),
        (VMI.replace("{domain: {}}", "[]"), "vm.yaml: spec: must be an object"),
        (VMI.replace("{name: one}", "5"), "vm.yaml: metadata: must be an object"),
        (
            VM.partition("spec:\n")[0],
            "vm.yaml: spec.template: must be an object: the instance to run",
        ),
        (
            VM.replace("{name: ignored", "[{name: ignored").replace("b}}", "b}}]"),
            "vm.yaml: spec.template.metadata: must be an object",
        ),
    ],
)
def test_a_wrong_document_is_one_line(refusal: Any, text: str, line: str) -> None:
    assert refusal(text) == line


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="no such file") as caught:
        read([str(tmp_path / "absent")])
    assert caught.value.code == exitcodes.NOT_FOUND
    with pytest.raises(CliError, match="cannot be read: Is a directory"):
        read([str(tmp_path)])
    with pytest.raises(CliError, match="cannot be read"):
        read(["nul\0byte"])
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(CliError, match="is not UTF-8: byte 0 is wrong"):
        read([str(binary)])
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(CliError, match="is larger than 16 MiB"):
        read([str(huge)])


def test_standard_input_is_read_once() -> None:
    with pytest.raises(CliError, match="only once") as caught:
        read(["-", "-"])
    assert caught.value.code == exitcodes.USAGE
