"""convert, validate, defaults and overhead, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvnode.cli import exitcodes
from tests.cli.conftest import Kvnode

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO, MACHINE = str(EXAMPLES / "vmi-demo.yaml"), str(EXAMPLES / "vm-demo.yaml")


def instance(**domain: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": "one"},
            "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}, **domain}},
        }
    )


def machine(**domain: Any) -> str:
    vmi = json.loads(instance(**domain))
    return json.dumps({**vmi, "kind": "VirtualMachine", "spec": {"template": {"spec": vmi["spec"]}}})


# --- convert --------------------------------------------------------------------------------------


def test_convert_prints_the_domain(kvnode: Kvnode) -> None:
    result = kvnode("convert", DEMO)
    assert (result.code, result.err) == (0, "")
    domain = ET.fromstring(result.out)
    assert domain.findtext("name") == "default_demo"
    assert domain.findtext("memory") == str(256 << 20)


def test_convert_indents_on_request_and_says_the_same(kvnode: Kvnode) -> None:
    text = instance(firmware={"uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223"})
    plain = kvnode("convert", "-", stdin=text).out
    pretty = kvnode("convert", "--indent", "-", stdin=text).out
    assert "\n  <name>default_one</name>\n" in pretty
    assert ET.canonicalize(plain, strip_text=True) == ET.canonicalize(pretty, strip_text=True)


def test_convert_of_several_says_which_is_which(kvnode: Kvnode) -> None:
    result = kvnode("convert", DEMO, MACHINE)
    assert [line for line in result.out.splitlines() if line.startswith("<!--")] == [
        f"<!-- {DEMO}: default/demo -->",
        f"<!-- {MACHINE}: default/demo-vm -->",
    ]


def test_convert_for_programs(kvnode: Kvnode) -> None:
    (entry,) = json.loads(kvnode("convert", "-o", "json", "-", stdin=instance()).out)
    assert (entry["source"], entry["namespace"], entry["name"]) == ("<stdin>", "default", "one")
    assert entry["xml"].startswith("<domain ")


def test_convert_takes_a_context(kvnode: Kvnode, tmp_path: Path) -> None:
    context = tmp_path / "context.yaml"
    context.write_text("kvmAvailable: false\nallowEmulation: true\n")
    assert 'type="qemu"' in kvnode("convert", "--context", str(context), "-", stdin=instance()).out


def test_convert_names_every_cause_and_prints_no_domain(kvnode: Kvnode) -> None:
    text = machine(
        devices={"disks": [{"name": "lost", "disk": {}}]}, cpu={"model": "x"}, ioThreadsPolicy="odd"
    )
    result = kvnode("convert", "-", stdin=text)
    assert (result.code, result.out) == (exitcodes.FAILED, "")
    assert all(line.startswith("kvnode: <stdin>: spec.template.spec.domain.") for line in result.lines)
    assert len(result.lines) >= 2


def test_convert_raw_takes_what_a_cluster_stored(kvnode: Kvnode) -> None:
    stored = kvnode("defaults", "-o", "json", "-", stdin=instance()).out
    result = kvnode("convert", "--raw", "-", stdin=stored)
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize(
    "domain", [{"devices": 5}, {"devices": {"interfaces": [3]}}, {"firmware": "x"}, {"cpu": []}]
)
def test_convert_raw_of_nonsense_is_one_line(kvnode: Kvnode, domain: dict[str, Any]) -> None:
    result = kvnode("convert", "--raw", "-", stdin=instance(**domain))
    assert result.code == exitcodes.FAILED
    assert len(result.lines) == 1
    assert result.err.startswith("kvnode: <stdin>: spec.domain.")


# --- validate -------------------------------------------------------------------------------------


def test_validate_a_valid_manifest(kvnode: Kvnode) -> None:
    result = kvnode("validate", DEMO)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"{DEMO}: VirtualMachineInstance default/demo: valid\n"


def test_validate_names_file_and_field(kvnode: Kvnode) -> None:
    result = kvnode("validate", "-", stdin=machine(devices={"disks": [{"name": "lost", "disk": {}}]}))
    assert result.code == exitcodes.FAILED
    assert any(
        line.startswith("kvnode: <stdin>: spec.template.spec.domain.devices.disks[0]")
        for line in result.lines
    )
    assert result.out.endswith("VirtualMachine default/one: invalid\n")


def test_validate_for_programs(kvnode: Kvnode) -> None:
    text = instance() + "\n" + instance(devices={"disks": [{"name": "lost", "disk": {}}]})
    result = kvnode("validate", "-o", "json", "-", stdin=text)
    good, bad = json.loads(result.out)
    assert (good["valid"], good["errors"], bad["valid"]) == (True, [], False)
    assert set(bad["errors"][0]) == {"field", "reason", "message"}
    assert (result.code, result.err) == (exitcodes.FAILED, "")


def test_duplicate_keys_warn_and_fail_when_strict(kvnode: Kvnode) -> None:
    text = "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: a}\nspec:\n  domain:\n"
    text += "    memory: {guest: 64Mi}\n    devices: {}\n    devices: {}\n"
    result = kvnode("validate", "-", stdin=text)
    said = "<stdin>: spec.domain.devices: is there twice (again in line 8): the last one counts"
    assert (result.code, result.lines) == (0, [f"kvnode: warning: {said}"])
    result = kvnode("validate", "--strict", "-", stdin=text)
    assert (result.code, result.lines) == (exitcodes.FAILED, [f"kvnode: {said}"])


def test_what_defaulting_refuses_is_an_error_of_validation(kvnode: Kvnode) -> None:
    result = kvnode("validate", "-o", "json", "-", stdin=instance(memory={"guest": "lots"}))
    (entry,) = json.loads(result.out)
    assert [e["field"] for e in entry["errors"]] == ["spec.domain.memory.guest"]
    assert result.code == exitcodes.FAILED


# --- defaults -------------------------------------------------------------------------------------


def test_defaults_are_yaml_and_json(kvnode: Kvnode) -> None:
    text = instance(firmware={"uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223"})
    as_yaml = yaml.safe_load(kvnode("defaults", "-", stdin=text).out)
    as_json = json.loads(kvnode("defaults", "-o", "json", "-", stdin=text).out)
    assert as_yaml == as_json
    assert as_json["spec"]["domain"]["machine"]["type"] == "q35"


def test_defaults_of_several(kvnode: Kvnode) -> None:
    documents = list(yaml.safe_load_all(kvnode("defaults", DEMO, MACHINE).out))
    assert [d["metadata"]["name"] for d in documents] == ["demo", "demo-vm"]
    listed = json.loads(kvnode("defaults", "-o", "json", DEMO, MACHINE).out)
    assert (listed["kind"], len(listed["items"])) == ("List", 2)


def test_defaults_take_an_architecture_and_a_configuration(kvnode: Kvnode, tmp_path: Path) -> None:
    config = tmp_path / "kubevirt.yaml"
    config.write_text("kind: KubeVirt\nspec: {configuration: {cpuModel: Nehalem}}\n")
    made = json.loads(
        kvnode(
            "defaults", "-o", "json", "--arch", "arm64", "--config", str(config), "-", stdin=instance()
        ).out
    )
    assert made["spec"]["architecture"] == "arm64"
    assert made["spec"]["domain"]["machine"]["type"] == "virt"


# --- overhead -------------------------------------------------------------------------------------


def test_overhead_in_bytes_and_in_terms(kvnode: Kvnode) -> None:
    result = kvnode("overhead", "-o", "json", "-", stdin=machine())
    (entry,) = json.loads(result.out)
    assert entry["bytes"] == sum(term["bytes"] for term in entry["terms"])
    assert kvnode("overhead", "-", stdin=machine()).out.endswith(f" ({entry['bytes']} bytes)\n")
    explained = kvnode("overhead", "--explain", "-", stdin=machine()).out
    assert "launcher-monitor   25.0 MiB" in explained
    assert "spec.template.spec.domain" in explained


def test_overhead_takes_a_ratio(kvnode: Kvnode) -> None:
    once, twice = (
        json.loads(kvnode("overhead", "-o", "json", *ratio, "-", stdin=instance()).out)[0]["bytes"]
        for ratio in ((), ("--ratio", "2"))
    )
    assert twice == pytest.approx(2 * once, rel=1e-5)  # the reference rounds on the way


# --- all of them ----------------------------------------------------------------------------------

VERBS = ["convert", "validate", "defaults", "overhead"]

BAD = {
    "truncated": '{"apiVersion": "kubevirt.io/v1", "kind": ',
    "not an object": "- 1",
    "no kind": "spec: {}",
    "another kind": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}",
    "empty": "",
    "control characters": '{"kind": "Virtual\\u001b[31mMachine", "apiVersion": "kubevirt.io/v1"}',
    "deep": "[" * 5000,
    "NaN": instance(memory={"guest": float("nan")}),
    "template missing": '{"kind": "VirtualMachine", "apiVersion": "kubevirt.io/v1", "spec": {}}',
    "memory of the wrong type": instance(memory=[]),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_a_bad_manifest_is_told_in_one_line(kvnode: Kvnode, verb: str, text: str) -> None:
    result = kvnode(verb, "-", stdin=text)
    assert result.code == exitcodes.FAILED
    (line,) = result.lines
    assert line.startswith("kvnode: <stdin>: ")
    assert line.isprintable()


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_machine_is_named(kvnode: Kvnode, verb: str) -> None:
    result = kvnode(verb, "-", stdin=f'{{"apiVersion": "v1", "kind": "Secret"}}\n{instance()}')
    assert result.code == 0
    assert result.lines == [
        "kvnode: warning: <stdin>, document 1: Secret (v1) is no virtual machine: left out"
    ]


@pytest.mark.parametrize("verb", VERBS)
def test_a_bad_configuration_is_told(kvnode: Kvnode, tmp_path: Path, verb: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("[]")
    result = kvnode(verb, "--config", str(config), DEMO)
    assert result.code == exitcodes.FAILED
    assert result.lines == [
        f"kvnode: {config}: must hold one mapping: a KubeVirt object, or its spec.configuration"
    ]


def test_no_libvirt_no_psutil_and_no_tables_are_loaded() -> None:
    """The pure verbs work where only the library is installed."""
    code = (
        "import sys\n"
        "from kvnode.cli.app import run\n"
        f"codes = [run([verb, {DEMO!r}]) for verb in {VERBS!r}]\n"
        "bad = {'libvirt', 'psutil', 'rich', 'lxml', 'kvnode.standalone'} & set(sys.modules)\n"
        "sys.exit(f'{codes} {bad}' if any(codes) or bad else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- what is wrong elsewhere than in a manifest -----------------------------------------------------


def test_validate_goes_on_behind_a_file_that_cannot_be_read(kvnode: Kvnode, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff")
    result = kvnode("validate", str(tmp_path / "absent"), str(tmp_path / "binary"), DEMO)
    assert result.code == exitcodes.NOT_FOUND
    assert result.out == f"{DEMO}: VirtualMachineInstance default/demo: valid\n"
    assert [line.rpartition(": ")[2] for line in result.lines] == ["no such file", "byte 0 is wrong"]


@pytest.mark.parametrize("verb", [("convert",), ("explain",), ("diff", DEMO)])
def test_an_error_in_the_context_names_its_file(
    kvnode: Kvnode, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    (tmp_path / "node.yaml").write_text("cpuSet: [-1]")
    result = kvnode(*verb, DEMO, "--context", str(tmp_path / "node.yaml"))
    assert result.code == exitcodes.FAILED
    (line,) = result.lines
    assert line.startswith(f"kvnode: {tmp_path}/node.yaml: context.cpuSet[0]: ")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("developerConfiguration: 1", "spec.configuration.developerConfiguration"),
        ("{kind: KubeVirt, spec: {configuration: []}}", "spec.configuration"),
        ("kind: Pod", "kind"),
    ],
)
def test_an_error_in_the_configuration_names_its_file(
    kvnode: Kvnode, tmp_path: Path, text: str, field: str
) -> None:
    (tmp_path / "kv.yaml").write_text(text)
    result = kvnode("overhead", DEMO, "--config", str(tmp_path / "kv.yaml"))
    assert result.code == exitcodes.FAILED
    (line,) = result.lines
    assert line.startswith(f"kvnode: {tmp_path}/kv.yaml: {field}: ")


@pytest.mark.parametrize("ratio", ["", "much", "nan", "inf", "1e999", "-1", "1,5"])
def test_a_ratio_that_is_no_number_is_refused(kvnode: Kvnode, ratio: str) -> None:
    result = kvnode("overhead", DEMO, "--ratio", ratio)
    assert result.code == exitcodes.USAGE
    (line,) = result.lines
    assert "must be a number such as 1.5" in line
