"""The demo guest, really built and really booted (in bare QEMU: what is tested here is the guest)."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Guest
from tools.guest import build as building

pytestmark = pytest.mark.integration

QEMU = ("qemu-system-x86_64", "-accel", "tcg", "-m", "256", "-display", "none", "-serial", "stdio")
ARGUMENTS = "console=ttyS0 quiet panic=-1"


def boot(*arguments: str) -> str:
    """What a guest that powers off by itself wrote to its serial console."""
    command = [*QEMU, "-nodefaults", "-no-reboot", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=True, stdin=subprocess.DEVNULL
    )
    return done.stdout.replace("\r", "")


def by_kernel(guest: Guest, switches: str) -> list[str]:
    return [
        *("-machine", "q35", "-kernel", str(guest.kernel), "-initrd", str(guest.initrd)),
        *("-append", f"{ARGUMENTS} {switches}"),
    ]


def seed(directory: Path, user_data: str) -> Path:
    """A cloud-init ISO as KubeVirt makes them."""
    (directory / "meta-data").write_text(
        '{"instance-id":"seeded.default","local-hostname":"seeded","uuid":"x"}\n'
    )
    (directory / "user-data").write_text(user_data)
    image = directory / "seed.iso"
    sources = [str(directory / "meta-data"), str(directory / "user-data")]
    options = ["-volid", "cidata", "-joliet", "-rock"]
    subprocess.run(
        ["xorrisofs", "-quiet", "-o", str(image), *options, *sources], check=True, capture_output=True
    )
    return image


def test_the_same_bytes_twice(tmp_path: Path, guest: Guest) -> None:
    again = building.build(tmp_path / "again", print, force=True)
    before = guest.directory
    if packages_of(before) != packages_of(again):  # apt has got newer ones since it was built
        before = building.build(tmp_path / "before", print, force=True)
    for name in (*building.OUTPUTS, building.MANIFEST):
        first, second = ((d / name).read_bytes() for d in (before, again))
        assert hashlib.sha256(first).hexdigest() == hashlib.sha256(second).hexdigest(), name


def packages_of(directory: Path) -> object:
    """What a guest was made of."""
    return json.loads((directory / building.MANIFEST).read_text())["packages"]


def test_it_tells_what_it_has_and_powers_off(guest: Guest) -> None:
    text = boot(
        *by_kernel(guest, "kvnode.poweroff"),
        "-smp",
        "2",
        "-drive",
        f"file={guest.disk},format=raw,if=virtio,snapshot=on",
    )
    assert "kvnode-guest: cpus 2 " in text
    assert f"kvnode-guest: disk vda {guest.disk.stat().st_size} bytes" in text
    assert "kvnode-guest: up after " in text
    memory = int(text.split("kvnode-guest: memory ")[1].split(" KiB")[0])
    assert 200 * 1024 < memory < 256 * 1024
    assert text.index("up after") < text.index("powering off, as told")


def test_it_touches_as_much_memory_as_it_is_told(guest: Guest) -> None:
    assert "kvnode-guest: touched 33554432 bytes\n" in boot(
        *by_kernel(guest, "kvnode.touch=32M kvnode.poweroff")
    )


def test_a_wrong_switch_is_told(guest: Guest) -> None:
    text = boot(*by_kernel(guest, "kvnode.touch=lots kvnode.typo kvnode.poweroff"))
    assert "kvnode.touch=lots: give a size such as 64M" in text
    assert "kvnode.typo is no switch of this guest" in text


def test_it_crashes_when_told(guest: Guest) -> None:
    assert "Kernel panic - not syncing" in boot(*by_kernel(guest, "kvnode.panic"))


def test_it_boots_its_disk_by_bios_and_reads_its_seed(guest: Guest, tmp_path: Path) -> None:
    user_data = "#!/bin/sh\necho from the user data of $(hostname)\n# kvnode.poweroff\n"
    image = seed(tmp_path, user_data)
    text = boot(
        *("-machine", "q35", "-drive", f"file={guest.qcow2},if=virtio,snapshot=on"),
        *("-drive", f"file={image},format=raw,if=virtio,readonly=on"),
    )
    assert "BIOS or direct boot" in text
    assert f"cloud-init user-data sha256 {hashlib.sha256(user_data.encode()).hexdigest()}" in text
    assert "\nfrom the user data of seeded\n" in text


def test_it_boots_its_disk_by_uefi(guest: Guest, tmp_path: Path) -> None:
    variables = tmp_path / "vars.fd"
    variables.write_bytes(Path("/usr/share/OVMF/OVMF_VARS_4M.fd").read_bytes())
    image = seed(tmp_path, "# kvnode.poweroff\n")
    text = boot(
        *("-machine", "q35", "-drive", f"file={guest.disk},format=raw,if=virtio,snapshot=on"),
        *("-drive", f"file={image},format=raw,if=virtio,readonly=on"),
        *("-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd"),
        *("-drive", f"if=pflash,format=raw,file={variables}"),
    )
    assert "UEFI boot" in text


def test_its_network_is_there_when_it_says_up(guest: Guest) -> None:
    network = ("-netdev", "user,id=n", "-device", "virtio-net-pci,netdev=n,mac=52:54:00:00:00:07")
    text = boot(*by_kernel(guest, "kvnode.poweroff"), *network)
    assert "kvnode-guest: nic eth0 52:54:00:00:00:07\n" in text
    assert text.index("kvnode-guest: address eth0 10.0.2.15\n") < text.index("kvnode-guest: up")
