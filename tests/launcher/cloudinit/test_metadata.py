"""The metadata files."""

from __future__ import annotations

import json
from typing import Any

from kvnode.launcher.cloudinit import metadata
from tests.launcher.cloudinit.machines import UUID, vmi


def hostname(machine: dict[str, Any]) -> str:
    """The host name that NoCloud tells."""
    return str(json.loads(metadata.no_cloud(metadata.of_vmi(machine, {})))["local-hostname"])


def test_the_hostname_is_the_specs_or_the_first_label_of_the_name() -> None:
    assert hostname(vmi({}, name="web.example")) == "web"
    assert hostname(vmi({}, name="n" * 70)) == "n" * 63
    assert hostname(vmi({}, name="n" * 62 + "-b")) == "n" * 62
    assert hostname(vmi({}, hostname="mine")) == "mine"


def test_the_instance_type_comes_first_and_is_escaped() -> None:
    machine = vmi({})
    machine["metadata"]["annotations"] = {"kubevirt.io/instancetype-name": "a<b>&\u2028"}
    written = metadata.no_cloud(metadata.of_vmi(machine, {}))
    assert written.startswith(b'{"instance-type":"a\\u003cb\\u003e\\u0026\\u2028","instance-id"')
    machine["metadata"]["annotations"]["kubevirt.io/cluster-instancetype-name"] = "wide"
    assert b'"instance-type":"wide"' in metadata.no_cloud(metadata.of_vmi(machine, {}))


def test_keys_are_ordered_by_their_text() -> None:
    keys = {str(number): f"key {number}" for number in range(11)}
    written = metadata.no_cloud(metadata.of_vmi(vmi({}), keys)).decode()
    assert written.index('"10"') < written.index('"2"')


def test_a_config_drive_in_full() -> None:
    devices = [
        {
            "tags": ["t"],
            "type": "hostdev",
            "bus": "pci",
            "address": "0000:65:10.0",
            "numaNode": 1,
            "alignedCPUs": [0],
        },
        {"tags": None, "type": "nic", "bus": "pci", "address": "0000:01:00.0", "mac": "", "numaNode": 0},
    ]
    machine = vmi({}, kind="cloudInitConfigDrive")
    written = metadata.config_drive(metadata.of_vmi(machine, {"0": "k"}), machine, devices)
    assert written.decode() == (
        f'{{"instance_id":"testvmi.ns1","hostname":"testvmi","uuid":"{UUID}","devices":['
        '{"type":"hostdev","bus":"pci","address":"0000:65:10.0","numaNode":1,"alignedCPUs":[0],"tags":["t"]},'
        '{"type":"nic","bus":"pci","address":"0000:01:00.0","tags":null}],"public_keys":{"0":"k"}}'
    )


def test_a_machine_without_firmware_gets_an_identity() -> None:
    machine = vmi({})
    del machine["spec"]["domain"]["firmware"]
    identities = {metadata.of_vmi(machine, {}).uuid for _ in range(2)}
    assert len(identities) == 2
    assert "" not in identities
