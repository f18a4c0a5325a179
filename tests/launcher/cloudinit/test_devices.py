"""Tagged devices, out of a live domain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvnode.launcher import cloudinit
from kvnode.launcher.cloudinit import devices

ADDRESS = "<address type='pci' domain='0x0000' bus='0x0{bus}' slot='0x00' function='0x0'/>"
DOMAIN = f"""
<domain>
  <cputune><vcpupin vcpu='0' cpuset='4'/><vcpupin vcpu='1' cpuset='5'/><vcpupin vcpu='2' cpuset='9'/></cputune>
  <devices>
    <interface type='ethernet'><mac address='02:00:00:00:00:01'/><alias name='ua-red'/>
      {ADDRESS.format(bus=1)}</interface>
    <interface type='ethernet'><mac address='02:00:00:00:00:02'/><alias name='ua-plain'/>
      {ADDRESS.format(bus=2)}</interface>
    <interface type='ethernet'>{ADDRESS.format(bus=3)}</interface>
    <hostdev><source><address domain='0x0000' bus='0x65' slot='0x10' function='0x1'/></source>
      <alias name='ua-sriov-blue'/>{ADDRESS.format(bus=4)}</hostdev>
    <hostdev><source><address domain='0x0000' bus='0x65' slot='0x10' function='0x2'/></source>
      <alias name='ua-hostdevice-card'/>{ADDRESS.format(bus=5)}</hostdev>
    <hostdev><alias name='ua-gpu-screen'/>{ADDRESS.format(bus=6)}</hostdev>
  </devices>
</domain>
"""


def vmi(cpu: dict[str, Any] | None = None, tag: str = "t") -> dict[str, Any]:
    """A VMI that tags most of the domain's devices."""
    interfaces = [{"name": "red", "tag": tag}, {"name": "plain"}, {"name": "blue", "tag": tag}]
    hosts = [{"name": "card", "tag": tag}]
    return {"spec": {"domain": {"cpu": cpu, "devices": {"interfaces": interfaces, "hostDevices": hosts}}}}


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose card is near to NUMA node 1, with the CPUs 4 to 6 and 9."""
    for name, node in (("0000:65:10.1", "-1"), ("0000:65:10.2", "1")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "numa_node").write_text(node + "\n")
    (tmp_path / "node1").mkdir()
    (tmp_path / "node1/cpulist").write_text("4-6,9\n")
    monkeypatch.setattr(devices, "PCI_DEVICES", tmp_path)
    monkeypatch.setattr(devices, "NODES", tmp_path)


def test_tagged_devices_and_no_others() -> None:
    assert cloudinit.tagged_devices(vmi(), DOMAIN) == [
        {"type": "nic", "bus": "pci", "address": "0000:01:00.0", "mac": "02:00:00:00:00:01", "tags": ["t"]},
        {"type": "nic", "bus": "pci", "address": "0000:04:00.0", "tags": ["t"]},
        {"type": "hostdev", "bus": "pci", "address": "0000:05:00.0", "tags": ["t"]},
    ]


@pytest.mark.parametrize(
    ("cpu", "placed"),
    [
        ({"numa": {"guestMappingPassthrough": {}}, "dedicatedCpuPlacement": True}, {"numaNode": 1}),
        ({"dedicatedCpuPlacement": True}, {"alignedCPUs": [0, 1, 2]}),
        ({"cores": 2}, {}),
    ],
)
def test_where_a_host_device_is_near_to(cpu: dict[str, Any], placed: dict[str, Any]) -> None:
    found = cloudinit.tagged_devices(vmi(cpu), DOMAIN)
    assert found is not None
    assert {key: found[2].get(key) for key in placed} == placed
    assert set(found[2]) == {"type", "bus", "address", "tags", *placed}
    assert "numaNode" not in found[1], "a device without a node has none"


def test_without_tags_the_domain_is_not_looked_at() -> None:
    assert cloudinit.tagged_devices(vmi(tag=""), "no XML") is None


def test_what_is_no_xml_is_refused() -> None:
    with pytest.raises(ValueError, match="not well-formed"):
        cloudinit.tagged_devices(vmi(), "<domain>")
