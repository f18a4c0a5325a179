"""What launchers are told of the host, and host disks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.agent.errors import AgentError
from kvnode.agent.hostdisks import with_host_disks
from kvnode.agent.options import domain_attachments, virtual_machine_options
from kvnode.agent.topology import read_topology
from kvnode.rpc.cmd_v1_pb2 import Topology
from kvnode.spec.config import ClusterConfig
from tests.agent.build import vmi

CELL = """<capabilities><host><topology><cells num='1'><cell id='1'>
<memory unit='KiB'>1024</memory><pages unit='KiB' size='4'>256</pages>
<distances><sibling id='0' value='10'/></distances>
<cpus num='1'><cpu id='3' socket_id='0' siblings='3,7,8-9'/></cpus></cell></cells></topology></host></capabilities>"""


class TestTopology:
    def test_a_whole_cell(self):
        (cell,) = read_topology(CELL).numa_cells
        assert (cell.id, cell.memory.amount, cell.memory.unit) == (1, 1024, "KiB")
        assert [(page.count, page.size, page.unit) for page in cell.pages] == [(256, 4, "KiB")]
        assert [(one.id, one.value) for one in cell.distances] == [(0, 10)]
        assert [(cpu.id, list(cpu.siblings)) for cpu in cell.cpus] == [(3, [3, 7])]

    @pytest.mark.parametrize(
        ("text", "cells"),
        [
            ("<capabilities/>", 0),
            ("<capabilities><host/></capabilities>", 0),
            ("<capabilities><host><topology/></host></capabilities>", 0),
            ("<capabilities><host><topology><cells num='1'/></topology></host></capabilities>", 0),
            ("<c><host><topology><cells num='1'><cell id='0'/></cells></topology></host></c>", 1),
            ("<c><host><topology><cells><cell><memory/><cpus/></cell></cells></topology></host></c>", 1),
            ("<c><host><topology><cells><cell id='x'><distances/></cell></cells></topology></host></c>", 1),
        ],
    )
    def test_what_is_missing_is_missing(self, text, cells):
        found = read_topology(text).numa_cells
        assert len(found) == cells
        assert all(not cell.cpus and not cell.distances and cell.memory.amount == 0 for cell in found)

    @pytest.mark.parametrize("text", ["", "<", "x"])
    def test_no_xml_is_a_clear_error(self, text):
        with pytest.raises(AgentError, match="libvirt's capabilities"):
            read_topology(text)

    @given(st.text(alphabet="0123456789-x", max_size=30))
    def test_numbers_of_any_size_fit(self, number):
        text = CELL.replace("'10'", f"'{number}'").replace("1024", number).replace("'3'", f"'{number}'")
        assert len(read_topology(text).numa_cells) == 1


class TestOptions:
    def test_they_are_the_clusters(self):
        config = ClusterConfig.from_mapping({"memBalloonStatsPeriod": 5, "smbios": {"sku": "s"}})
        options = virtual_machine_options(vmi(), config, Topology(), ["data"])
        assert options.MemBalloonStatsPeriod == 5
        assert list(options.PreallocatedVolumes) == ["data"]
        assert options.clusterConfig.BochsDisplayForEFIGuests
        assert not options.clusterConfig.FreePageReportingDisabled
        smbios = options.VirtualMachineSMBios
        assert (smbios.family, smbios.product, smbios.manufacturer, smbios.sku) == (
            "KubeVirt",
            "None",
            "KubeVirt",
            "s",
        )

    def test_attachments(self):
        interfaces = [
            {"name": "a", "masquerade": {}},
            {"name": "b", "binding": {"name": "managed"}},
            {"name": "c", "binding": {"name": "unknown"}},
            {"name": "d", "sriov": {}},
        ]
        one = vmi(spec={"domain": {"devices": {"interfaces": interfaces}}})
        plugins = {"managed": {"domainAttachmentType": "managedTap"}}
        assert domain_attachments(one, plugins) == {"a": "tap", "b": "tap"}


class TestHostDisks:
    def claim(self, **info):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
        status = {"volumeStatus": [{"name": "data", "persistentVolumeClaimInfo": info}]}
        return vmi(spec={"volumes": [volume]}, status=status)

    def test_a_file_system_holds_an_image(self):
        one = self.claim(
            capacity={"storage": "10Gi"}, requests={"storage": "5Gi"}, accessModes=["ReadWriteMany"]
        )
        (volume,) = with_host_disks(one)["spec"]["volumes"]
        assert volume == {
            "name": "data",
            "hostDisk": {
                "path": "/var/run/kubevirt-private/vmi-disks/data/disk.img",
                "type": "DiskOrCreate",
                "capacity": "5Gi",
                "shared": True,
            },
        }
        assert "persistentVolumeClaim" in one["spec"]["volumes"][0]

    def test_sizes_are_whole_mebibytes(self):
        (volume,) = with_host_disks(self.claim(capacity={"storage": "3000000"}))["spec"]["volumes"]
        assert volume["hostDisk"]["capacity"] == str(2 * 2**20)

    def test_a_block_device_stays(self):
        one = self.claim(capacity={"storage": "1Gi"}, volumeMode="Block")
        assert with_host_disks(one) == one

    @pytest.mark.parametrize(
        ("info", "words"),
        [
            ({}, "neither"),
            ({"capacity": {"storage": "1k"}}, "1Mi"),
            ({"requests": {"storage": "big"}}, "not a quantity"),
        ],
    )
    def test_what_has_no_size_is_named(self, info, words):
        with pytest.raises(AgentError, match=f"volume data: .*{words}"):
            with_host_disks(self.claim(**info))
