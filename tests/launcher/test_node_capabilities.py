"""What the agent is told of the node; a real libvirt answers in tests/e2e."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libvirt
import pytest

from kvnode.launcher import node_capabilities
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.programs import labeller
from tests.virt.errors import libvirt_error

DOMAINS = """\
<domainCapabilities><domain>{kind}</domain><cpu>
  <mode name='host-passthrough' supported='yes'/>
  <mode name='host-model' supported='yes'>
    <model fallback='forbid'>EPYC</model><feature policy='require' name='x2apic'/>
  </mode>
</cpu></domainCapabilities>"""


class Connection:
    """As much of libvirt's as is used."""

    def __init__(self, refused: tuple[str, ...] = ()) -> None:
        self.refused = refused
        self.asked: list[Any] = []

    def getDomainCapabilities(  # noqa: N802
        self, _emulator: None, architecture: str, machine: str, kind: str, _flags: int
    ) -> str:
        if kind in self.refused or architecture in self.refused:
            raise libvirt_error(f"no {kind}")
        self.asked.append((architecture, machine, kind))
        return DOMAINS.format(kind=kind)

    def baselineHypervisorCPU(  # noqa: N802
        self, _emulator: None, architecture: str, machine: str, kind: str, cpus: list[str], flags: int
    ) -> str:
        self.asked.append((architecture, machine, kind, cpus, flags))
        return "<cpu/>"

    def getCapabilities(self) -> str:  # noqa: N802
        return "<capabilities/>"

    def close(self) -> None:
        pass


@contextlib.contextmanager
def no_daemon() -> Iterator[str]:
    yield "test:///default"


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    made = Connection()
    monkeypatch.setattr(node_capabilities, "_daemon", no_daemon)
    monkeypatch.setattr(node_capabilities, "_open", lambda _uri: made)
    monkeypatch.setattr(node_capabilities, "_KVM", tmp_path / "kvm")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    return made


def test_the_files_are_those_that_the_agent_reads(tmp_path: Path, connection: Connection) -> None:
    assert labeller.main([str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "capabilities.xml",
        "virsh_domcapabilities.xml",
        "supported_features.xml",
        "virsh_domcapabilities_aarch64.xml",
    }
    assert connection.asked[0] == ("x86_64", "q35", "qemu")
    architecture, machine, kind, [cpu], flags = connection.asked[1]
    assert (architecture, machine, kind) == ("x86_64", "q35", "qemu")
    assert '<model fallback="forbid">EPYC' in cpu
    assert "x2apic" in cpu
    assert flags == libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES


def test_a_node_with_kvm_is_asked_of_kvm(tmp_path: Path, connection: Connection) -> None:
    (tmp_path / "kvm").touch()
    node_capabilities.write_capabilities(tmp_path)
    assert "<domain>kvm<" in (tmp_path / "virsh_domcapabilities.xml").read_text()
    connection.refused = ("kvm", "aarch64")
    (tmp_path / "virsh_domcapabilities_aarch64.xml").unlink()
    node_capabilities.write_capabilities(tmp_path)
    assert "<domain>qemu<" in (tmp_path / "virsh_domcapabilities.xml").read_text(), (
        "KVM is there, and of no use"
    )
    assert not (tmp_path / "virsh_domcapabilities_aarch64.xml").exists()


def test_a_libvirt_that_does_not_answer_is_one_line(
    tmp_path: Path, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    connection.refused = ("qemu",)
    assert labeller.main([str(tmp_path)]) == 1
    assert [path.name for path in tmp_path.iterdir()] == []
    assert "libvirt does not tell what it can do: no qemu" in "".join(capsys.readouterr())


def test_a_wrong_call_is_refused() -> None:
    assert labeller.main(["a", "b"]) == 2


def test_without_a_host_model_there_is_no_baseline() -> None:
    with pytest.raises(LauncherError, match="no cpu mode host-model"):
        node_capabilities.host_model("<domainCapabilities><cpu/></domainCapabilities>")
