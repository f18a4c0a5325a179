"""The converter's context of a node."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import kvnode
from kvnode.launcher import context, efi_files
from kvnode.launcher.context import ContextBuilder, image_info, parse_cpus, topology_of
from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.rpc.cmd_v1_pb2 import Topology, VirtualMachineOptions


def options(**more):
    return ManagerOptions("n", "a", kvm=True, **more)


def instance(spec=None, status=None, **annotations):
    made = {"metadata": {"annotations": annotations}, "spec": spec or {}, "status": status or {}}
    return Instance.read(json.dumps(made).encode())


def build(vmi, asked=None, **more):
    return ContextBuilder(options(**more)).build(vmi, asked)


class TestOptions:
    def test_without_options(self):
        made = build(instance())
        assert made["kvmAvailable"] is True
        assert made["freePageReporting"] is True
        assert made["serialConsoleLog"] is True
        assert "smbios" not in made
        assert "topology" not in made
        kvnode.ConverterContext(made)

    def test_what_the_agent_tells(self):
        asked = VirtualMachineOptions(
            VirtualMachineSMBios={"manufacturer": "M", "family": "F"},
            MemBalloonStatsPeriod=10,
            PreallocatedVolumes=["v"],
            clusterConfig={
                "FreePageReportingDisabled": True,
                "BochsDisplayForEFIGuests": True,
                "SerialConsoleLogDisabled": True,
                "PCINUMAAwareTopologyEnabled": True,
            },
            interfaceDomainAttachment={"default": "tap"},
        )
        made = build(instance(), asked)
        expected = {
            "smbios": {"manufacturer": "M", "family": "F"},
            "memBalloonStatsPeriod": 10,
            "volumesDiscardIgnore": ["v"],
            "freePageReporting": False,
            "bochsForEFIGuests": True,
            "serialConsoleLog": False,
            "pciNUMAAwareTopology": True,
            "domainAttachmentByInterface": {"default": "tap"},
        }
        assert {name: made[name] for name in expected} == expected
        kvnode.ConverterContext(made)

    @pytest.mark.parametrize(
        "vmi",
        [
            instance({"domain": {"cpu": {"dedicatedCpuPlacement": True}}}),
            instance({"domain": {"cpu": {"realtime": {}}}}),
            instance({"domain": {"memory": {"hugepages": {"pageSize": "2Mi"}}}}),
            instance({"domain": {"devices": {"autoattachMemBalloon": False}}}),
            instance(**{"kubevirt.io/free-page-reporting-disabled": "true"}),
        ],
    )
    def test_guests_whose_memory_is_theirs_report_no_free_pages(self, vmi):
        assert build(vmi)["freePageReporting"] is False

    def test_a_vmi_may_ask_for_its_consoles_log(self):
        asked = VirtualMachineOptions(clusterConfig={"SerialConsoleLogDisabled": True})
        for wanted in (True, False):
            vmi = instance({"domain": {"devices": {"logSerialConsole": wanted}}})
            assert build(vmi, asked)["serialConsoleLog"] is wanted

    def test_the_hosts_cells_are_read_by_the_converter(self):
        topology = Topology(
            numa_cells=[
                {
                    "id": 1,
                    "memory": {"amount": 5, "unit": "KiB"},
                    "pages": [{"count": 2, "unit": "KiB", "size": 4}],
                    "distances": [{"id": 0, "value": 10}],
                    "cpus": [{"id": 3, "siblings": [3, 7]}],
                }
            ]
        )
        made = topology_of(topology)
        assert made["numa_cells"][0]["cpus"] == [{"id": 3, "siblings": [3, 7]}]
        assert build(instance(), VirtualMachineOptions(topology=topology))["topology"] == made
        kvnode.ConverterContext({"topology": made})

    def test_another_architecture_only_where_it_may_be(self):
        vmi = instance({"architecture": "s390x"})
        assert build(vmi)["architecture"] == "amd64"
        assert build(vmi, allow_cross_arch_emulation=True)["architecture"] == "s390x"


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8\n", [0, 1, 2, 3, 8]), ("5", [5]), ("", []), ("a-b,2", [2]), ("3-1", [])]
)
def test_cpu_lists(text, cpus):
    assert parse_cpus(text) == cpus


def test_the_cpus_of_the_cgroup_or_of_the_process(tmp_path, monkeypatch):
    (tmp_path / "cpus").write_text("2-3\n")
    monkeypatch.setattr(context, "_CPUSETS", (tmp_path / "none", tmp_path / "cpus"))
    assert context.pod_cpus() == [2, 3]
    monkeypatch.setattr(context, "_CPUSETS", (tmp_path / "none",))
    assert context.pod_cpus()


def test_volumes_are_block_devices_when_the_pod_has_their_devices(monkeypatch):
    monkeypatch.setattr(
        context, "_is_device", lambda path: str(path) in ("/dev/b", "/var/run/kubevirt/hotplug-disks/h")
    )
    volumes = [
        {"name": "b", "persistentVolumeClaim": {"claimName": "b"}},
        {"name": "f", "ephemeral": {"persistentVolumeClaim": {"claimName": "f"}}},
        {"name": "h", "dataVolume": {"name": "h"}},
        {"name": "e", "emptyDisk": {"capacity": "1Gi"}},
    ]
    status = {
        "volumeStatus": [{"name": "h", "target": "", "hotplugVolume": {}}, {"name": "b", "target": "vda"}]
    }
    made = build(instance({"volumes": volumes}, status))
    assert made["isBlockPVC"] == {"b": True, "f": False}
    assert made["isBlockDV"] == {"h": True}
    assert (list(made["hotplugVolumes"]), list(made["permanentVolumes"])) == (["h"], ["b"])


class TestImages:
    LIMIT = 2000 << 20

    def image(self, path, *arguments):
        subprocess.run(["qemu-img", "create", "-q", *arguments[:2], *arguments[2:], path, "1M"], check=True)
        return path

    def test_an_image_is_looked_at_once(self, tmp_path, monkeypatch):
        self.image(tmp_path / "disk_0.img", "-f", "qcow2")
        monkeypatch.setattr(context.paths, "container_disk", lambda index: tmp_path / f"disk_{index}.img")
        vmi = instance({"volumes": [{"name": "c", "containerDisk": {"image": "i"}}]})
        builder = ContextBuilder(options())
        assert builder.build(vmi, None)["disksInfo"]["c"]["format"] == "qcow2"
        (tmp_path / "disk_0.img").unlink()
        assert builder.build(vmi, None)["disksInfo"]["c"]["virtual-size"] == 1 << 20

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("-f", "vmdk"), "must be qcow2 or raw, is vmdk"),
            (
                ("-f", "qcow2", "-F", "raw", "-b", "/etc/hostname"),
                "must stand alone, and has a backing-filename",
            ),
        ],
    )
    def test_images_that_are_refused(self, tmp_path, monkeypatch, arguments, words):
        self.image(tmp_path / "disk_0.img", *arguments)
        monkeypatch.setattr(context.paths, "container_disk", lambda index: tmp_path / f"disk_{index}.img")
        with pytest.raises(ManagerError, match=f"volume c: container disk: the image {words}"):
            build(instance({"volumes": [{"name": "c", "containerDisk": {"image": "i"}}]}))

    def test_an_image_with_its_data_elsewhere_is_refused(self, tmp_path):
        made = self.image(tmp_path / "a", "-f", "qcow2", "-o", f"data_file={tmp_path}/b")
        with pytest.raises(ManagerError, match="data"):
            context._usable(image_info(made, self.LIMIT))

    def test_the_tool_is_held_to_its_memory(self, tmp_path):
        with pytest.raises(ManagerError):
            image_info(self.image(tmp_path / "a", "-f", "qcow2"), 1 << 20)

    def test_a_pipe_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ManagerError, match="pipe is neither a file nor a block device"):
            image_info(tmp_path / "pipe", self.LIMIT)

    def test_a_tool_that_hangs_is_said_to(self, tmp_path, monkeypatch):
        tool = tmp_path / "qemu-img"
        tool.write_text("#!/bin/sh\nexec sleep 60\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        monkeypatch.setattr(context, "IMAGE_SECONDS", 1)
        (tmp_path / "a").touch()
        with pytest.raises(ManagerError, match=r"^qemu-img has not told in 6 s what \S+/a is$"):
            image_info(tmp_path / "a", self.LIMIT)

    def test_a_name_is_no_command(self, tmp_path):
        with pytest.raises(ManagerError, match="No such file"):
            image_info(Path(f'{tmp_path}/"; touch {tmp_path}/x; "'), self.LIMIT)
        assert not (tmp_path / "x").exists()


class TestFirmware:
    @pytest.fixture
    def directory(self, tmp_path):
        return tmp_path

    def efi(self, directory, firmware=None, architecture="amd64", security=None, **more):
        domain = {"firmware": {"bootloader": {"efi": firmware if firmware is not None else {}}}}
        if security:
            domain["launchSecurity"] = {security: {}}
        vmi = instance({"domain": domain})
        return efi_files.efi(vmi, options(ovmf_path=directory, **more), architecture)

    def put(self, directory, *names):
        for name in names:
            (directory / name).write_bytes(b"")

    def test_none_for_a_bios(self, directory):
        assert efi_files.efi(instance(), options(ovmf_path=directory), "amd64") is None

    @pytest.mark.parametrize(
        ("there", "secure", "code", "variables"),
        [
            (
                ("OVMF_CODE.secboot.fd", "OVMF_VARS.secboot.fd"),
                True,
                "OVMF_CODE.secboot.fd",
                "OVMF_VARS.secboot.fd",
            ),
            (
                ("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd"),
                True,
                "OVMF_CODE_4M.secboot.fd",
                "OVMF_VARS_4M.ms.fd",
            ),
            (
                ("OVMF_CODE.secboot.fd", "OVMF_CODE.fd", "OVMF_VARS.fd"),
                False,
                "OVMF_CODE.secboot.fd",
                "OVMF_VARS.fd",
            ),
            (("OVMF_CODE.fd", "OVMF_VARS.fd"), False, "OVMF_CODE.fd", "OVMF_VARS.fd"),
            (("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"), False, "OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
        ],
    )
    def test_files(self, directory, there, secure, code, variables):
        self.put(directory, *there)
        firmware = {} if secure else {"secureBoot": False}
        assert self.efi(directory, firmware) == {
            "code": str(directory / code),
            "vars": str(directory / variables),
            "secureLoader": secure,
        }

    @pytest.mark.parametrize(
        ("security", "secure", "code", "loader"),
        [
            ("sev", False, "OVMF_CODE.cc.fd", False),
            ("snp", False, "OVMF.amdsev.fd", False),
            ("tdx", False, "OVMF.inteltdx.fd", False),
            ("tdx", True, "OVMF.inteltdx.secboot.fd", False),
        ],
    )
    def test_encrypted_guests(self, directory, security, secure, code, loader):
        self.put(directory, code, "OVMF_VARS.fd")
        found = self.efi(directory, {"secureBoot": secure}, security=security)
        assert (found["code"], found["secureLoader"]) == (str(directory / code), loader)

    def test_arm(self, directory):
        self.put(directory, "AAVMF_CODE.fd", "AAVMF_VARS.fd")
        assert self.efi(directory, {"secureBoot": False}, "arm64")["code"].endswith("AAVMF_CODE.fd")

    def test_libvirt_may_choose(self, directory):
        assert self.efi(directory, firmware_auto_selection=True) == {
            "secureLoader": True,
            "firmwareAutoSelection": True,
        }

    def test_the_node_agent_knows_missing_firmware_by_its_words(self, directory):
        # pkg/virt-handler/vm.go:2137
        with pytest.raises(ManagerError, match="EFI OVMF rom missing"):
            self.efi(directory)
        with pytest.raises(ManagerError, match="guest under SEV"):
            self.efi(directory, {"secureBoot": True}, security="sev")
