"""From a manifest to an instance: names, templates, configuration, and errors that name the field."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.standalone.errors import StandaloneError
from kvnode.standalone.manifest import read_manifest
from kvnode.standalone.model import StartOptions
from tests.standalone.helpers import disk_vmi, kernel_vmi


def read(manifest: Any, **options: Any) -> Any:
    """Read a manifest for amd64."""
    return read_manifest(manifest, StartOptions(**options), "amd64")


def machine(**spec: Any) -> dict[str, Any]:
    """A VirtualMachine around a small template."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": kernel_vmi("inner")["spec"]}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "outer", "namespace": "team"},
        "spec": {"runStrategy": "Always", "template": template, **spec},
    }


def test_an_instance_is_defaulted_named_and_the_manifest_untouched() -> None:
    manifest = kernel_vmi("web")
    before = copy.deepcopy(manifest)
    instance = read(manifest)
    assert manifest == before
    assert (instance.namespace, instance.name, instance.prefix) == ("default", "web", "")
    assert instance.uid != read(manifest).uid, "each start has an identity of its own"
    assert instance.vmi["spec"]["domain"]["machine"]["type"] == "q35"


def test_name_and_namespace_may_be_given() -> None:
    instance = read(kernel_vmi("web"), name="other", namespace="team")
    assert (instance.namespace, instance.name) == ("team", "other")


def test_a_generated_name_keeps_its_prefix() -> None:
    manifest = kernel_vmi("web")
    manifest["metadata"] = {"generateName": "web-"}
    first, second = read(manifest).name, read(manifest).name
    assert first.startswith("web-")
    assert first != second


def test_a_virtual_machines_template_is_run_under_its_name() -> None:
    instance = read(machine())
    assert (instance.namespace, instance.name, instance.prefix) == ("team", "outer", "spec.template.")
    assert instance.vmi["kind"] == "VirtualMachineInstance"
    assert instance.vmi["metadata"]["labels"] == {"app": "web"}


def test_a_vm_without_interfaces_gets_masquerade() -> None:
    (interface,) = read(kernel_vmi("web")).vmi["spec"]["domain"]["devices"]["interfaces"]
    assert "masquerade" in interface


def test_host_disks_are_allowed_and_more_gates_may_be_opened() -> None:
    volume = {"name": "d", "hostDisk": {"path": "/srv/d.img", "type": "Disk"}}
    wanted = disk_vmi("web", [volume])
    read(wanted)
    wanted["spec"]["volumes"].append({"name": "m", "downwardMetrics": {}})
    wanted["spec"]["domain"]["devices"]["disks"].append({"name": "m", "disk": {"bus": "virtio"}})
    with pytest.raises(StandaloneError, match="DownwardMetrics"):
        read(wanted)
    instance = read(wanted, config={"developerConfiguration": {"featureGates": ["DownwardMetrics"]}})
    assert instance.config["developerConfiguration"]["featureGates"] == ["HostDisk", "DownwardMetrics"]
    with pytest.raises(StandaloneError, match="the cluster configuration"):
        read(wanted, config={"developerConfiguration": "none"})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"apiVersion": "v1"}, "apiVersion"),
        ({"kind": "Pod"}, "kind"),
        ({"spec": None}, "spec"),
        ({"spec": []}, "spec"),
        ({"metadata": "web"}, "metadata"),
        ({"metadata": {}}, "metadata.name"),
        ({"metadata": {"name": "../../etc"}}, "metadata.name"),
        ({"metadata": {"name": "Web"}}, "metadata.name"),
        ({"metadata": {"name": "a" * 300}}, "metadata.name"),
        ({"metadata": {"name": ["web"]}}, "metadata.name"),
        ({"metadata": {"name": "web", "namespace": "a/b"}}, "metadata.namespace"),
        ({"spec": {"domain": {"cpu": {"cores": "two"}}}}, "spec.domain.cpu.cores"),
        ({"spec": {"domain": {"memory": {"guest": "plenty"}}}}, "spec.domain.memory.guest"),
        ({"spec": {"domain": {"colour": "red"}}}, "spec.domain.colour"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(StandaloneError) as error:
        read({**kernel_vmi("web"), **change})
    assert error.value.field == field
    assert str(error.value).startswith(f"{field}: ")
    assert "\n" not in str(error.value)


def test_a_fault_in_a_template_has_its_place_in_the_manifest() -> None:
    manifest = machine()
    manifest["spec"]["template"]["spec"]["domain"]["cpu"] = {"cores": -1}
    with pytest.raises(StandaloneError) as error:
        read(manifest)
    assert error.value.field == "spec.template.spec.domain.cpu.cores"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"template": None}, "spec.template"),
        ({"template": {"spec": None}}, "spec.template.spec"),
        ({"instancetype": {"name": "small"}}, "spec.instancetype"),
        ({"dataVolumeTemplates": [{}]}, "spec.dataVolumeTemplates"),
    ],
)
def test_virtual_machines_that_cannot_be_run(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(StandaloneError) as error:
        read(machine(**spec))
    assert error.value.field == field


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_anything_is_read_or_refused(document: object) -> None:
    with pytest.raises(StandaloneError):
        read(document)


@given(st.sampled_from(["metadata", "spec"]), JSON)
def test_any_part_is_read_or_refused(key: str, value: object) -> None:
    for manifest in ({**kernel_vmi("web"), key: value}, {**machine(), key: value}):
        with contextlib.suppress(StandaloneError):
            read(manifest)
