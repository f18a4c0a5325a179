"""kvnode pod, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvnode.cli import exitcodes
from tests.cli.conftest import Kvnode

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO, MACHINE = str(EXAMPLES / "vmi-demo.yaml"), str(EXAMPLES / "vm-demo.yaml")


def instance(name: str = "one", volumes: list[dict[str, Any]] | None = None, **domain: Any) -> str:
    spec: dict[str, Any] = {"domain": {"memory": {"guest": "64Gi"}, "devices": {}, **domain}}
    if volumes:
        spec["volumes"] = volumes
        spec["domain"]["devices"] = {"disks": [{"name": v["name"], "disk": {}} for v in volumes]}
    return json.dumps(
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": name},
            "spec": spec,
        }
    )


def machine(**domain: Any) -> str:
    vmi = json.loads(instance(**domain))
    return json.dumps({**vmi, "kind": "VirtualMachine", "spec": {"template": {"spec": vmi["spec"]}}})


def test_a_pod_as_yaml_and_as_json(kvnode: Kvnode) -> None:
    as_yaml, as_json = kvnode("pod", DEMO), kvnode("pod", "-o", "json", DEMO)
    assert (as_yaml.code, as_yaml.err) == (0, "")
    pods = [yaml.safe_load(as_yaml.out), json.loads(as_json.out)]
    for pod in pods:
        command = pod["spec"]["containers"][0]["command"]
        command[command.index("--qemu-timeout") + 1] = "random"
    assert pods[0] == pods[1]
    assert (pods[0]["kind"], pods[0]["apiVersion"]) == ("Pod", "v1")
    assert pods[0]["metadata"]["namespace"] == "default"


def test_it_is_the_pod_of_a_cluster(kvnode: Kvnode) -> None:
    """Defaults are filled in, the launcher is not root, and Istio is told of the interface."""
    pod = yaml.safe_load(kvnode("pod", "-", stdin=instance()).out)
    assert pod["spec"]["securityContext"]["runAsUser"] == 107
    assert pod["spec"]["nodeSelector"]["machine-type.node.kubevirt.io/q35"] == "true"


def test_several(kvnode: Kvnode) -> None:
    made = list(yaml.safe_load_all(kvnode("pod", DEMO, MACHINE).out))
    assert [pod["metadata"]["generateName"] for pod in made] == [
        "virt-launcher-demo-",
        "virt-launcher-demo-vm-",
    ]
    listed = json.loads(kvnode("pod", "-o", "json", DEMO, MACHINE).out)
    assert (listed["kind"], len(listed["items"])) == ("List", 2)


def test_an_image_and_a_configuration(kvnode: Kvnode, tmp_path: Path) -> None:
    config = tmp_path / "kubevirt.yaml"
    config.write_text("{defaultRuntimeClass: kata}")
    pod = yaml.safe_load(kvnode("pod", "--image", "r/l:1", "--config", str(config), DEMO).out)
    assert pod["spec"]["containers"][0]["image"] == "r/l:1"
    assert pod["spec"]["runtimeClassName"] == "kata"


def test_block_devices(kvnode: Kvnode) -> None:
    volumes = [{"name": n, "persistentVolumeClaim": {"claimName": f"c-{n}"}} for n in "ab"]
    text = instance(volumes=volumes)
    container = yaml.safe_load(kvnode("pod", "--block", "c-a", "-", stdin=text).out)["spec"]["containers"][0]
    assert container["volumeDevices"] == [{"name": "a", "devicePath": "/dev/a"}]
    assert "b" in {mount["name"] for mount in container["volumeMounts"]}
    assert "volumeDevices" not in yaml.safe_load(kvnode("pod", "-", stdin=text).out)["spec"]["containers"][0]


def test_a_block_device_that_nothing_uses_is_a_mistake(kvnode: Kvnode) -> None:
    result = kvnode("pod", "--block", "c-x", "-", stdin=instance())
    assert result.code == exitcodes.USAGE
    assert "no volume lies on a claim 'c-x'" in result.err


def test_state_that_outlives_the_pod_has_a_claim(kvnode: Kvnode) -> None:
    text = instance(devices={"tpm": {"persistent": True}})
    pod = yaml.safe_load(kvnode("pod", "-", stdin=text).out)
    (claim,) = [v["persistentVolumeClaim"] for v in pod["spec"]["volumes"] if v["name"] == "vm-state"]
    assert claim == {"claimName": "persistent-state-for-one"}


def test_raw_takes_what_a_cluster_stored(kvnode: Kvnode) -> None:
    pod = yaml.safe_load(kvnode("pod", "--raw", "-", stdin=instance()).out)
    assert pod["spec"]["securityContext"] == {"fsGroup": 107, "runAsUser": 0}
    assert not [key for key in pod["spec"]["nodeSelector"] if key.startswith("machine-type")]


# --- --explain --------------------------------------------------------------------------------------


def test_the_sum_term_by_term(kvnode: Kvnode) -> None:
    result = kvnode("pod", "--explain", "-", stdin=machine())
    head, columns, *rows = result.out.splitlines()
    assert head == f"<stdin>: one: the pod requests 64.3 GiB ({(64 << 30) + 281018368} bytes)"
    assert columns.split() == ["TERM", "SIZE", "WHY", "FIELD"]
    assert rows[0].split()[:3] == ["guest", "64.0", "GiB"]
    assert rows[0].endswith("spec.template.spec.domain.memory.guest")
    assert [row.split()[0] for row in rows[1:]][:2] == ["launcher-monitor", "launcher"]


def test_where_it_falls_short(kvnode: Kvnode) -> None:
    (line,) = kvnode("pod", "--explain", "-", stdin=machine()).lines
    assert line.startswith(
        "kvnode: warning: <stdin>: spec.template.spec.domain.memory.guest: up to 128Mi of page tables"
    )
    safe = kvnode("pod", "--explain", "--guest-page-tables", "-", stdin=machine())
    assert safe.err == ""
    assert f"{(64 << 30) + 281018368 + 134217728} bytes" in safe.out


def test_the_account_as_data(kvnode: Kvnode) -> None:
    text = instance(memory={"guest": "4Gi", "hugepages": {"pageSize": "2Mi"}})
    (entry,) = json.loads(kvnode("pod", "--explain", "-o", "json", "-", stdin=text).out)
    assert entry["request"] == sum(term["bytes"] for term in entry["terms"])
    assert (entry["hugepages"], entry["limit"], entry["warnings"]) == ({"hugepages-2Mi": 4 << 30}, None, [])


def test_a_limit_is_told(kvnode: Kvnode) -> None:
    text = instance(cpu={"cores": 4, "dedicatedCpuPlacement": True}, memory={"guest": "4Gi"})
    result = kvnode("pod", "--explain", "--raw", "-", stdin=text)
    assert f"limited to 4.4 GiB ({4294967296 + 411041792} bytes)" in result.out
    assert any("dedicatedCpuPlacement" in line for line in result.lines)


# --- what goes wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [(), ("--raw",), ("--explain",), ("--explain", "--raw"), ("--block", "c")])
@pytest.mark.parametrize(
    "text",
    [
        "{",
        "- 1",
        "",
        instance(memory=[]),
        instance(memory={"guest": "lots"}),
        instance(devices={"disks": [7]}),
    ],
)
def test_bad_input_is_told_in_one_line(kvnode: Kvnode, extra: tuple[str, ...], text: str) -> None:
    result = kvnode("pod", *extra, "-", stdin=text)
    assert result.code == exitcodes.FAILED
    (line,) = result.lines
    assert line.startswith("kvnode: <stdin>: ")
    assert line.isprintable()


@pytest.mark.parametrize("flags", [(), ("--explain",)])
def test_a_device_that_is_not_permitted_names_its_field(
    kvnode: Kvnode, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    config = tmp_path / "kubevirt.yaml"
    config.write_text("{permittedHostDevices: {}}")
    text = machine(devices={"gpus": [{"name": "g", "deviceName": "v/g"}]})
    result = kvnode("pod", *flags, "--raw", "--config", str(config), "-", stdin=text)
    assert result.code == exitcodes.FAILED
    (line,) = result.lines
    assert line.startswith(
        "kvnode: <stdin>: spec.template.spec.domain.devices.gpus[0].deviceName: 'v/g' is not among"
    )
