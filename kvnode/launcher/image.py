"""qemu-img and xorrisofs, run with care: their errors in one line, and nothing left half-made."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kvnode.launcher.errors import LauncherError
from kvnode.launcher.ownership import give_to_qemu

_TIMEOUT = 120.0
# A guest's disk is for QEMU's user and this process's alone (``pkg/ephemeral-disk/ephemeral-disk.go:116``).
_MODE = 0o640


def run_tool(arguments: list[str], reason: str) -> bytes:
    """Run a tool and return its output; raises LauncherError with the last line of its errors."""
    try:
        done = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False, cwd="/"
        )
    except subprocess.TimeoutExpired:
        raise LauncherError(reason, f"{arguments[0]} did not end within {_TIMEOUT:g} s") from None
    except OSError as error:
        raise LauncherError(reason, f"{arguments[0]} does not start: {error.strerror}") from None
    except ValueError:
        raise LauncherError(reason, f"{arguments[0]}: an argument holds what no argument can") from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"]
        raise LauncherError(reason, f"{arguments[0]}: {lines[-1].removeprefix(arguments[0] + ': ')}")
    return done.stdout


def whole_mebibytes(size: int) -> int:
    """Round a disk's size down to what storage with sectors of any size takes (``pkg/util/util.go:113``)."""
    return size - size % (1 << 20)


def create_qcow2(
    path: Path, *, size: int | None = None, backing: Path | None = None, backing_format: str = ""
) -> None:
    """Create a qcow2 image of ``size`` bytes, or over ``backing``; an image that is there already is kept.

    The image is made under another name and renamed, so that a path that exists is always a whole image.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(path.name + ".staging")
    arguments = ["qemu-img", "create", "-q", "-f", "qcow2"]
    if backing is not None:
        arguments += ["-b", str(backing), "-F", backing_format]
    arguments.append(str(staging))
    if size is not None:
        arguments.append(str(size))
    run_tool(arguments, "DiskFailed")
    try:
        staging.chmod(_MODE)
        give_to_qemu(staging)
        staging.replace(path)
    except OSError as error:
        raise LauncherError("DiskFailed", f"{path} cannot be put in place: {error.strerror}") from None
