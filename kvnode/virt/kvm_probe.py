"""Does KVM really work here, with the CPU model that the guest would get?

A device node that opens proves little: some hosts offer /dev/kvm, then refuse the first CPU model, or run a
guest so slowly (each privileged instruction emulated by itself) that no operating system ever comes up. So a
tiny guest is run: sixty bytes in place of the firmware count down from fifty million in 32-bit protected mode
and leave through QEMU's ``isa-debug-exit`` port. Native execution takes some 20 ms, and emulation one
instruction at a time a minute.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

#: Processor seconds that QEMU may use for the tiny guest: time alone would also judge how busy the machine is.
CPU_LIMIT = 3.0
#: Seconds after which it is given up in any case.
TIME_LIMIT = 30.0

_POLL_SECONDS = 0.01

_FIRMWARE_SIZE = 0x10000
_RESET_VECTOR = 0xFFF0
_EXIT_VALUE = 0x2A
_EXIT_STATUS = _EXIT_VALUE << 1 | 1  # what isa-debug-exit makes of the value written

# 16-bit: cli; lgdt; set CR0.PE; far jump. 32-bit: mov $50000000, %ecx; 1: dec; jnz 1b; mov $0x2a, %al; out
# %al, $0xf4; hlt for ever. Then a flat GDT and its descriptor. The firmware is mapped at 0xf0000 as well as
# below 4 GiB.
_CODE = bytes.fromhex(
    "fa2e660f011640000f20c00c010f22c066ea18000f000800b980f0fa024975fdb02ae6f4f4ebfd90"
    "0000000000000000ffff0000009bcf00ffff00000093cf00170028000f00"
)
_JUMP_TO_CODE = bytes.fromhex("e90d00")


@dataclass(frozen=True)
class KvmVerdict:
    """Whether KVM is to be used, and why: one line for people."""

    works: bool
    reason: str


def cpu_argument(mode: str, model: str = "") -> str:
    """Return QEMU's ``-cpu`` for a domain's ``<cpu mode>`` and model.

    Only an exact model is named: host-model, host-passthrough and maximum all start from the host's own CPU.
    """
    return model if mode == "custom" and model else "host"


def probe_kvm(emulator: str, cpu: str = "host", *, cache: Path | None = None) -> KvmVerdict:
    """Run the tiny guest under KVM and return the verdict.

    ``emulator`` is QEMU's path, ``cpu`` its ``-cpu`` argument. ``cache`` is a JSON file (made and renewed
    here) that keeps verdicts for this boot of the machine, this QEMU and this CPU. Raises nothing: what goes
    wrong is the reason.
    """
    early = _without_running(emulator)
    if early is not None:
        return early
    key = _cache_key(emulator, cpu)
    known = _read_cache(cache)
    if isinstance(entry := known.get(key), dict) and isinstance(entry.get("works"), bool):
        return KvmVerdict(entry["works"], str(entry.get("reason", "")))
    verdict = _run_guest(emulator, cpu)
    if cache is not None:
        _write_cache(cache, {**known, key: asdict(verdict)})
    return verdict


def _without_running(emulator: str) -> KvmVerdict | None:
    """Return the verdict where there is nothing to run."""
    if not Path("/dev/kvm").exists():
        return KvmVerdict(False, "/dev/kvm is not there")
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return KvmVerdict(False, f"/dev/kvm does not open: {error.strerror}")
    if platform.machine() != "x86_64":
        return KvmVerdict(False, f"no test of KVM is known for {platform.machine()}")
    if not os.access(emulator, os.X_OK):
        return KvmVerdict(False, f"{emulator} is not there")
    return None


def _run_guest(emulator: str, cpu: str) -> KvmVerdict:
    firmware = bytearray(b"\xf4" * _FIRMWARE_SIZE)
    firmware[: len(_CODE)] = _CODE
    firmware[_RESET_VECTOR : _RESET_VECTOR + len(_JUMP_TO_CODE)] = _JUMP_TO_CODE
    with tempfile.NamedTemporaryFile(prefix="kvnode-probe-", suffix=".bin") as file:
        file.write(firmware)
        file.flush()
        arguments = [emulator, "-accel", "kvm", "-cpu", cpu, "-machine", "q35", "-m", "16", "-no-user-config"]
        arguments += ["-nodefaults", "-no-reboot", "-display", "none", "-bios", file.name]
        arguments += ["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
        return _judge(arguments, cpu)


def _judge(arguments: list[str], cpu: str) -> KvmVerdict:
    """Run QEMU until it ends or has used more processor time than any guest that KVM really runs."""
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
            )
        except OSError as error:
            return KvmVerdict(False, f"{arguments[0]} does not start: {error.strerror}")
        end = time.monotonic() + TIME_LIMIT
        while process.poll() is None:
            if cpu_seconds(process.pid) > CPU_LIMIT or time.monotonic() > end:
                process.kill()
                process.wait()
                return KvmVerdict(
                    False,
                    f"KVM starts a guest with CPU {cpu}, but runs it so slowly that a test of milliseconds "
                    f"did not end after {CPU_LIMIT:g} s of processor time",
                )
            time.sleep(_POLL_SECONDS)
        errors.seek(0)
        output = errors.read()
    if process.returncode == _EXIT_STATUS:
        return KvmVerdict(True, f"a test guest ran under KVM with CPU {cpu}")
    return KvmVerdict(False, f"KVM fails with CPU {cpu}: {_complaint(output, process.returncode)}")


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, its guest's included; 0 when it is gone."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _complaint(output: bytes, status: int) -> str:
    """Return the line of QEMU's errors that says most: its first error, else its last line."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "warning:" not in line]
    if errors:
        return errors[0].rpartition("qemu-system-x86_64: ")[2].removeprefix("error: ")
    end = f"signal {-status}" if status < 0 else f"status {status}"
    return f"QEMU ended with {end}"


def _cache_key(emulator: str, cpu: str) -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    file = Path(emulator).resolve().stat()
    return f"{boot} {emulator} {file.st_size} {file.st_mtime_ns} {cpu}"


def _read_cache(path: Path | None) -> dict[str, object]:
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {k: v for k, v in content.items() if k.startswith(boot)} if isinstance(content, dict) else {}


def _write_cache(path: Path, content: dict[str, object]) -> None:
    """Write the cache whole or not at all; a cache that cannot be written is no failure."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(content, file)
        Path(file.name).replace(path)
    except OSError:
        return
