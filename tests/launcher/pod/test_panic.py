"""What QEMU's log tells of a panic."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvnode.launcher.pod.panic import describe_panic, read_panic

BLUE = "2024-09-30 16:30:49.506+0000: panic hyper-v: arg1='0x5a', arg2='0x1', arg3='0x2', arg4='0x0', arg5='0xff'\n"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (BLUE + "later\n", "GuestPanicked: '0x5a', '0x1', '0x2', '0x0', '0xff'"),
        (
            "panic hyper-v: arg1='0x1'\npanic hyper-v: arg1='0x2'\n",
            "GuestPanicked: '0x2', '0x0', '0x0', '0x0', '0x0'",
        ),
        ("x: panic pvpanic: \n", "GuestPanicked: type=pvpanic"),
        ("all is well\n", "GuestPanicked (details unavailable)"),
        (
            "panic hyper-v: arg9='0x1', arg1='zz', arg2='0x" + "f" * 40 + "'\n",
            "GuestPanicked: '0x0', '0x0', '0x0', '0x0', '0x0'",
        ),
    ],
)
def test_the_last_panic_counts(tmp_path: Path, log: str, words: str) -> None:
    file = tmp_path / "ns_vm.log"
    file.write_text(log)
    assert describe_panic(read_panic(file)) == words


def test_no_log_is_no_error(tmp_path: Path) -> None:
    assert read_panic(tmp_path / "none")["Type"] == "unknown"
