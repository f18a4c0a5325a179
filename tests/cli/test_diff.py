"""``kvnode diff`` says what changes in the domain and what a running guest takes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvnode.cli import exitcodes
from tests.cli.conftest import Kvnode
from tests.cli.test_explain import VM

FIELD = "spec.template.spec.domain"


@pytest.fixture
def old(tmp_path: Path) -> str:
    file = tmp_path / "old.yaml"
    file.write_text(VM)
    return str(file)


def test_nothing(kvnode: Kvnode, old: str) -> None:
    result = kvnode("diff", old, "-", "--exit-code", stdin=VM)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"prod/web: {old} -> <stdin>\nNothing differs.\n"


def test_a_restart(kvnode: Kvnode, old: str) -> None:
    result = kvnode("diff", old, "-", stdin=VM.replace("cache: writethrough", "cache: none"))
    assert result.code == 0
    assert result.out.splitlines()[1:] == [
        f"restart  {FIELD}.devices.disks[0]: the volume is not hotpluggable",
        "           ~ devices/disk/driver/@cache  writethrough -> none",
        "A restart is needed, and changes of CPUs and memory wait for it too.",
    ]


def test_a_live_change(kvnode: Kvnode, tmp_path: Path) -> None:
    file = tmp_path / "vm.yaml"
    file.write_text(VM.replace("cores: 3", "cores: 3, sockets: 1"))
    result = kvnode("diff", str(file), "-", stdin=VM.replace("cores: 3", "cores: 3, sockets: 2"))
    lines = result.out.splitlines()
    assert lines[1].startswith(f"live     {FIELD}.cpu.sockets: vCPUs are plugged in")
    assert lines[2:5] == [f"           ~ vcpus/vcpu[{number}]/@enabled  no -> yes" for number in (4, 5, 6)]
    assert lines[-1] == "The running guest takes all of it."


def test_a_field_outside_of_the_domain(kvnode: Kvnode, old: str) -> None:
    text = VM.replace("      domain:", "      nodeSelector: {zone: a}\n      domain:")
    result = kvnode("diff", old, "-", stdin=text)
    assert result.out.splitlines()[1:] == [
        "live     spec.template.spec.nodeSelector: counts from the next migration on",
        "The running guest takes all of it.",
    ]


def test_exit_code(kvnode: Kvnode, old: str) -> None:
    other = VM.replace("cores: 3", "cores: 2")
    assert kvnode("diff", old, "-", stdin=other).code == 0
    assert kvnode("diff", old, "-", "--exit-code", stdin=other).code == exitcodes.FAILED


def test_for_programs(kvnode: Kvnode, old: str) -> None:
    other = VM.replace("cores: 3", "cores: 2")
    (found,) = json.loads(kvnode("diff", old, "-", "-o", "json", stdin=other).out)
    assert (found["running"], found["wanted"], found["needsRestart"]) == (old, "<stdin>", True)
    (field,) = found["fields"]
    assert field["fields"] == [f"{FIELD}.cpu.cores"]
    assert (field["old"], field["new"], field["live"], field["inDomain"]) == (3, 2, False, True)
    change = next(change for change in found["changes"] if change["path"] == "cpu/topology/@cores")
    assert change == {
        "path": "cpu/topology/@cores",
        "action": "changed",
        "old": "3",
        "new": "2",
        "live": False,
        "why": field["why"],
        "fields": field["fields"],
    }
    assert yaml.safe_load(kvnode("diff", old, "-", "-o", "yaml", stdin=other).out) == [found]


CLAIM = "{name: root, persistentVolumeClaim: {claimName: NAME}}"
CONTAINER = "{name: root, containerDisk: {image: 'registry/x:1'}}"


@pytest.mark.parametrize(("strategy", "effect"), [("Migration", "live"), ("Replacement", "restart")])
def test_volumes_that_are_copied(kvnode: Kvnode, tmp_path: Path, strategy: str, effect: str) -> None:
    text = VM.replace(CONTAINER, CLAIM).replace("Always", f"Always\n  updateVolumesStrategy: {strategy}")
    file = tmp_path / "vm.yaml"
    file.write_text(text.replace("NAME", "one"))
    out = kvnode("diff", str(file), "-", stdin=text.replace("NAME", "two")).out
    assert out.splitlines()[1].startswith(f"{effect:<7}  spec.template.spec.volumes[0]: ")


def test_machines_are_compared_by_name(kvnode: Kvnode, tmp_path: Path) -> None:
    other = VM.replace("web", "db")
    file = tmp_path / "both.yaml"
    file.write_text(f"{VM}---\n{other}")
    result = kvnode("diff", str(file), "-", stdin=f"{other}---\n{VM.replace('cores: 3', 'cores: 2')}")
    heads = [line for line in result.out.splitlines() if line.startswith("prod/")]
    assert [head.partition(":")[0] for head in heads] == ["prod/db", "prod/web"]
    assert "Nothing differs." in result.out


@pytest.mark.parametrize("reverse", [False, True])
def test_a_machine_without_a_partner(kvnode: Kvnode, tmp_path: Path, reverse: bool) -> None:
    file = tmp_path / "both.yaml"
    file.write_text(f"{VM}---\n{VM.replace('web', 'db')}")
    arguments = ("-", str(file)) if reverse else (str(file), "-")
    result = kvnode("diff", *arguments, stdin=VM)
    assert result.code == exitcodes.FAILED
    assert result.lines == [result.err.strip()]
    assert "metadata.name: no machine of this name" in result.err


def test_a_running_instance_as_the_cluster_has_it(kvnode: Kvnode, tmp_path: Path) -> None:
    """RUNNING is an instance with its status, WANTED the machine's manifest."""
    (vmi,) = yaml.safe_load_all(kvnode("defaults", "-", stdin=VM).out)
    vmi["metadata"] |= {"uid": "u-1", "resourceVersion": "5", "finalizers": ["x"]}
    vmi["status"] |= {"phase": "Running", "nodeName": "node01", "VSOCKCID": 7}
    file = tmp_path / "running.yaml"
    file.write_text(yaml.safe_dump(vmi))
    assert "Nothing differs." in kvnode("diff", "--raw", str(file), "-", stdin=VM).out


def test_standard_input_twice(kvnode: Kvnode) -> None:
    result = kvnode("diff", "-", "-", stdin=VM)
    assert result.code == exitcodes.USAGE
    assert "only once" in result.err


@pytest.mark.parametrize("broken", ["{", "[]", "kind: Pod\napiVersion: v1"])
def test_what_is_refused(kvnode: Kvnode, old: str, broken: str) -> None:
    result: Any = kvnode("diff", old, "-", stdin=broken)
    assert result.code == exitcodes.FAILED
    assert result.err.startswith("kvnode: ")
