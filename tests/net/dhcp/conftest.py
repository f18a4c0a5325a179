"""A pod and its guests in namespaces of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Guest
from tests.net.namespaces import Namespace
from tools.guest.build import cache_directory

GUEST_MAC = "02:00:00:00:00:77"
Serve = Callable[[list[dict[str, Any]]], None]

# As a launcher without root: one capability is all that it has.
_ONE = "-all,+net_bind_service"
UNPRIVILEGED = (
    *("setpriv", "--reuid=107", "--regid=107", "--clear-groups"),
    *(f"--inh-caps={_ONE}", f"--ambient-caps={_ONE}", f"--bounding-set={_ONE}"),
)


@pytest.fixture
def spaces() -> Iterator[ExitStack]:
    """Takes namespaces and processes, and ends them."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def pod(spaces: ExitStack) -> Namespace:
    """A pod's namespace without guests."""
    return spaces.enter_context(Namespace())


def attach(pod: Namespace, guest: Namespace, bridge: str, address: str, mac: str = GUEST_MAC) -> None:
    """Put a guest with an interface ``eth0`` on a bridge of the pod's, made when it is missing."""
    if bridge not in pod.run("ip", "-br", "link"):
        pod.run("ip", "link", "add", bridge, "type", "bridge")
        pod.run("ip", "addr", "add", address, "dev", bridge)
        pod.run("ip", "link", "set", bridge, "up")
    port = f"p{guest.pid}"
    pod.run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(guest.pid))
    pod.run("ip", "link", "set", port, "master", bridge)
    pod.run("ip", "link", "set", port, "up")
    # An address that is being checked for duplicates cannot be sent from; /proc/sys shows one's own namespace.
    guest.run("sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad")
    guest.run("ip", "link", "set", "eth0", "address", mac)
    guest.run("ip", "link", "set", "eth0", "up")


@pytest.fixture
def serve(pod: Namespace, tmp_path: Path, spaces: ExitStack) -> Serve:
    """Starts the servers of a pod in a process of their own."""
    (tmp_path / "resolv.conf").write_text(
        "search a.svc.example b.example\nnameserver 10.9.8.7\nnameserver fd00::53\n"
    )

    def start(configs: list[dict[str, Any]]) -> None:
        spaces.enter_context(serving(pod, tmp_path, configs))

    return start


@contextmanager
def serving(
    pod: Namespace, directory: Path, configs: list[dict[str, Any]], prefix: Sequence[str] = ()
) -> Iterator[None]:
    """Serve in a process of its own, which a command may start."""
    arguments = [*prefix, sys.executable, "-m", "tests.net.dhcp.serving", str(directory), json.dumps(configs)]
    with pod.start(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        marks = " ".join(sorted(f"dhcp_started-{config['name']}" for config in configs))
        assert process.stdout.readline() == f"serving {marks}\n"
        yield
        output, _ = process.communicate(timeout=180)
        assert output == "ended\n", "no mark stays"
        assert process.returncode == 0


@pytest.fixture(scope="session")
def busybox(guest: Guest) -> Path:
    """The demo guest's busybox, whose udhcpc is a client that users run."""
    return next((cache_directory() / "unpacked").glob("busybox-static_*/**/bin/busybox"))


@pytest.fixture
def ask(busybox: Path, tmp_path: Path) -> Callable[..., dict[str, str] | None]:
    """Runs udhcpc in a guest; what it was told, None when nobody answered."""
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\n[ "$1" != bound ] || env >"$FOUND"\n')
    script.chmod(0o755)

    def run(guest: Namespace, *more: str, tries: int = 10) -> dict[str, str] | None:
        found = tmp_path / f"found-{guest.pid}"
        found.unlink(missing_ok=True)
        command = [str(busybox), "udhcpc", "-i", "eth0", "-f", "-q", "-n", "-t", str(tries), "-T", "1"]
        subprocess.run(
            guest.command(*command, "-s", str(script), *more),
            capture_output=True,
            timeout=300,
            check=False,
            env={"FOUND": str(found), "PATH": "/usr/bin:/bin"},
        )
        if not found.is_file():
            return None
        return dict(line.split("=", 1) for line in found.read_text().splitlines() if "=" in line)

    return run
