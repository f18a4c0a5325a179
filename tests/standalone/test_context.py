"""The converter's context for this machine, and what of the machine it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvnode.standalone import context, host
from kvnode.standalone.context import build_context, judge_kvm
from kvnode.standalone.domainfacts import read_domain
from kvnode.standalone.errors import EXIT_ENVIRONMENT, StandaloneError
from kvnode.standalone.manifest import Instance
from kvnode.virt.kvm_probe import KvmVerdict


def instance(**domain: Any) -> Instance:
    """An instance with this domain."""
    return Instance({"metadata": {"name": "v"}, "spec": {"domain": domain}}, {}, "")


def quiet(_step: str, _text: str) -> None:
    """Tell nobody."""


class TestKvm:
    """Which verdict holds for a VM."""

    @pytest.fixture(autouse=True)
    def probe(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Note which CPUs are tried, and find that none works."""
        tried: list[str] = []

        def probed(_emulator: str, cpu: str, *, cache: Path) -> KvmVerdict:
            tried.append(cpu)
            return KvmVerdict(False, "no KVM here")

        monkeypatch.setattr(context, "probe_kvm", probed)
        return tried

    @pytest.mark.parametrize(
        ("cpu", "tried"),
        [
            (None, "host"),
            ({"model": "host-model"}, "host"),
            ({"model": "host-passthrough"}, "host"),
            ({"model": "EPYC"}, "EPYC"),
        ],
    )
    def test_the_cpu_that_the_guest_would_get_is_tried(
        self, probe: list[str], cpu: object, tried: str
    ) -> None:
        verdict = judge_kvm(instance(cpu=cpu), "qemu", "auto", Path("/c"), quiet)
        assert probe == [tried]
        assert verdict.reason == "no KVM here"

    def test_emulation_asks_nothing(self, probe: list[str]) -> None:
        assert not judge_kvm(instance(), "qemu", "emulation", Path("/c"), quiet).works
        assert probe == []

    def test_kvm_that_must_be_and_is_not_is_an_error(self) -> None:
        with pytest.raises(
            StandaloneError, match="KVM was asked for and does not work: no KVM here"
        ) as error:
            judge_kvm(instance(), "qemu", "kvm", Path("/c"), quiet)
        assert error.value.exit_code == EXIT_ENVIRONMENT


def test_the_context() -> None:
    vm = instance(devices={"interfaces": [{"name": "a", "masquerade": {}}, {"name": "b", "masquerade": {}}]})
    found = build_context(vm, "amd64", KvmVerdict(True, ""), {"root": {"format": "raw"}})
    assert found["kvmAvailable"] is True
    assert found["domainAttachmentByInterface"] == {"a": "tap", "b": "tap"}
    assert found["disksInfo"] == {"root": {"format": "raw"}}
    assert found["smbios"]["manufacturer"] == "KubeVirt"
    assert "efi" not in found


class TestEfi:
    """Firmware that this machine has."""

    @pytest.fixture(autouse=True)
    def directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """An empty directory of firmware."""
        monkeypatch.setattr(host, "_FIRMWARE", tmp_path)
        return tmp_path

    def vmi(self, efi: object) -> dict[str, Any]:
        """A VMI with this EFI section."""
        return instance(firmware={"bootloader": {"efi": efi}}).vmi

    def test_plain_and_secure(self, directory: Path) -> None:
        for name in ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd", "OVMF_CODE.secboot.fd", "OVMF_VARS.ms.fd"):
            (directory / name).touch()
        plain = host.efi(self.vmi({"secureBoot": False}))
        assert plain == {
            "code": str(directory / "OVMF_CODE_4M.fd"),
            "vars": str(directory / "OVMF_VARS_4M.fd"),
            "secureLoader": False,
        }
        secure = host.efi(self.vmi({}))
        assert secure is not None
        assert (secure["code"], secure["secureLoader"]) == (str(directory / "OVMF_CODE.secboot.fd"), True)
        assert host.efi(instance().vmi) is None

    def test_firmware_that_is_missing_is_named(self) -> None:
        with pytest.raises(StandaloneError, match=r"no firmware for secure boot .*package ovmf") as error:
            host.efi(self.vmi({}), "spec.template.")
        assert error.value.field == "spec.template.spec.domain.firmware.bootloader.efi"


def test_programs_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        host, "find_program", lambda name: None if name == "xorrisofs" else f"/usr/bin/{name}"
    )
    vmi = instance().vmi
    assert host.require_programs(vmi).startswith("/usr/bin/qemu-system-")
    vmi["spec"]["volumes"] = [{"name": "c", "cloudInitNoCloud": {}}]
    with pytest.raises(
        StandaloneError, match=r"xorrisofs is not installed \(Debian package xorriso\)"
    ) as error:
        host.require_programs(vmi)
    assert error.value.exit_code == EXIT_ENVIRONMENT


def test_root_is_asked_for_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.os, "geteuid", lambda: 1000)
    with pytest.raises(StandaloneError, match="this needs root") as error:
        host.require_root()
    assert error.value.exit_code == EXIT_ENVIRONMENT


def test_facts_of_a_domain() -> None:
    one = read_domain(b"<domain type='kvm'><memory unit='b'>1024</memory><vcpu>3</vcpu></domain>")
    assert (one.kind, one.memory, one.ram_blocks, one.vcpus) == ("kvm", 1024, (1024,), 3)
    cells = b"<cpu><numa><cell memory='2' unit='KiB'/><cell memory='4' unit='KiB'/></numa></cpu>"
    vcpus = b"<vcpu>4</vcpu><vcpus><vcpu enabled='yes'/><vcpu enabled='no'/></vcpus>"
    two = read_domain(b"<domain type='qemu'><memory>6</memory>" + cells + vcpus + b"</domain>")
    assert (two.memory, two.ram_blocks, two.vcpus) == (6144, (2048, 4096), 1)
