"""Does KVM work: what the tiny guest proves, and what is remembered of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from kvnode.virt import kvm_probe
from kvnode.virt.kvm_probe import KvmVerdict, cpu_argument, probe_kvm

EMULATOR = shutil.which("qemu-system-x86_64") or "/usr/bin/qemu-system-x86_64"


def fake(directory: Path, script: str) -> str:
    """An emulator that is a shell script; it counts its runs."""
    path = directory / "qemu-system-x86_64"
    path.write_text(f"#!/bin/sh\necho run >> {directory}/runs\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def kvm_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behave as on x86-64 with a device node that opens."""
    monkeypatch.setattr(kvm_probe, "_without_running", lambda _emulator: None)


def test_the_exit_that_only_the_guest_can_make_is_success(tmp_path: Path) -> None:
    assert probe_kvm(fake(tmp_path, "exit 85"), "host").works


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "echo 'qemu-system-x86_64: error: failed to set MSR 0x10a' >&2; kill -ABRT $$",
            "failed to set MSR 0x10a",
        ),
        ("echo 'qemu-system-x86_64: warning: odd' >&2; exit 0", "QEMU ended with status 0"),
        ("kill -SEGV $$", "QEMU ended with signal 11"),
    ],
)
def test_any_other_end_is_failure_with_its_reason(tmp_path: Path, script: str, reason: str) -> None:
    verdict = probe_kvm(fake(tmp_path, script), "host")
    assert not verdict.works
    assert verdict.reason == f"KVM fails with CPU host: {reason}"


def test_a_guest_that_crawls_is_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm_probe, "CPU_LIMIT", 0.2)
    verdict = probe_kvm(fake(tmp_path, "while :; do :; done"), "EPYC")
    assert not verdict.works
    assert "with CPU EPYC, but runs it so slowly" in verdict.reason


def test_a_guest_that_has_to_wait_for_a_processor_is_not_judged_slow(tmp_path: Path) -> None:
    assert probe_kvm(fake(tmp_path, "sleep 1; exit 85"), "host").works


def test_a_qemu_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm_probe, "TIME_LIMIT", 0.2)
    assert not probe_kvm(fake(tmp_path, "exec sleep 30"), "host").works


def test_a_verdict_is_kept_for_this_boot_qemu_and_cpu(tmp_path: Path) -> None:
    cache = tmp_path / "cache/kvm.json"
    emulator = fake(tmp_path, "exit 85")
    first = probe_kvm(emulator, "host", cache=cache)
    assert probe_kvm(emulator, "host", cache=cache) == first
    assert (tmp_path / "runs").read_text().count("run") == 1
    probe_kvm(emulator, "EPYC", cache=cache)
    assert (tmp_path / "runs").read_text().count("run") == 2
    os.utime(emulator, ns=(1, 1))
    probe_kvm(emulator, "host", cache=cache)
    assert (tmp_path / "runs").read_text().count("run") == 3
    content = json.loads(cache.read_text())
    cache.write_text(json.dumps({"another-boot" + key[12:]: value for key, value in content.items()}))
    probe_kvm(emulator, "host", cache=cache)
    assert (tmp_path / "runs").read_text().count("run") == 4
    assert len(json.loads(cache.read_text())) == 1, "verdicts of other boots are dropped"


@pytest.mark.parametrize("content", ["", "[]", "{", "\xff", '{"x": 1}'])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, content: str) -> None:
    cache = tmp_path / "kvm.json"
    cache.write_text(content, encoding="latin-1")
    assert probe_kvm(fake(tmp_path, "exit 85"), "host", cache=cache).works
    assert probe_kvm(fake(tmp_path, "exit 85"), "host", cache=Path("/proc/nowhere/kvm.json")).works


@pytest.mark.parametrize(
    ("mode", "model", "argument"),
    [
        ("host-model", "", "host"),
        ("host-passthrough", "x", "host"),
        ("custom", "EPYC", "EPYC"),
        ("custom", "", "host"),
    ],
)
def test_the_cpu_that_would_be_used_is_tried(mode: str, model: str, argument: str) -> None:
    assert cpu_argument(mode, model) == argument


@pytest.mark.integration
def test_the_tiny_guest_runs_on_a_cpu_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under software emulation the very same guest ends as it must, if not so soon."""
    monkeypatch.setattr(kvm_probe, "CPU_LIMIT", 60)
    monkeypatch.setattr(kvm_probe, "TIME_LIMIT", 600)
    script = fake(tmp_path, f'exec {EMULATOR} $(echo "$@" | sed "s/-accel kvm/-accel tcg/")')
    assert probe_kvm(script, "max") == KvmVerdict(True, "a test guest ran under KVM with CPU max")


@pytest.mark.integration
def test_this_machine_has_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    verdict = probe_kvm(EMULATOR, "host")
    assert verdict.reason
