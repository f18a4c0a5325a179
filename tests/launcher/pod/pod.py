"""A launcher pod on this machine: its own mounts and process ids, the paths of a pod, and nothing of a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt
import libvirt_qemu

import kvnode
from kvnode.memory.processes import by_role, in_namespaces_of
from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions
from kvnode.standalone.sandbox import Plan
from tests.conftest import Guest
from tests.net.namespaces import Namespace
from tests.standalone.helpers import alive, kernel_vmi, mounts_below, wait_until

ROOT = Path(kvnode.__file__).parent.parent
NAMESPACE, NAME, UID = "default", "pod", "1f3c1a0e-5c53-4a3f-8a5a-7d0a6b0c9d11"

#: A pod's /dev: without KVM, which does not run guests on every machine that has it.
_DEVICES = """
mount -t tmpfs dev /run/dev-new
for d in null zero full random urandom tty ptmx pts shm fuse; do
  [ -e /dev/$d ] || continue
  if [ -d /dev/$d ]; then mkdir /run/dev-new/$d; else touch /run/dev-new/$d; fi
  mount --bind /dev/$d /run/dev-new/$d
done
# Its own, which the agent gives to the launcher's user.
mkdir /run/dev-new/net
mknod -m 600 /run/dev-new/net/tun c 10 200
mount --move /run/dev-new /dev
"""
#: What the launcher's image has in /etc/libvirt, where its own user is named.
_QEMU_CONF = """\
user = "+{user}"
group = "+{user}"
stdio_handler = "logd"
dynamic_ownership = 1
remember_owner = 0
security_driver = "none"
namespaces = [ ]
cgroup_controllers = [ ]
"""

#: A user that this machine need not know, as the launcher's image knows it.
_ACCOUNT = """
for file in passwd group; do
  [ $file = passwd ] && more={user}::/:/sbin/nologin || more=
  cp /etc/$file /run/kvnode/pod-$file
  grep -q '^[^:]*:[^:]*:{user}:' /etc/$file || echo "qemu:x:{user}:$more" >> /run/kvnode/pod-$file
  mount --bind /run/kvnode/pod-$file /etc/$file
done
"""
#: The interpreter where others may reach it: it is below a home directory on some machines.
_PYTHON = f"""
case {sys.base_prefix} in /root/*)
  mkdir /run/python
  mount --bind {sys.base_prefix} /run/python
  mount -t tmpfs -o mode=755 none /root
  mkdir -p {sys.base_prefix}
  mount --move /run/python {sys.base_prefix}
  rmdir /run/python
esac
"""

OPTIONS = VirtualMachineOptions(MemBalloonStatsPeriod=10)


def pod_vmi(arguments: str = "", *, guest_agent: bool = True, **spec: Any) -> dict[str, Any]:
    """The VMI that the agent hands over: the demo guest's kernel, no network."""
    vmi = kernel_vmi(NAME, arguments, **spec)
    vmi["metadata"] |= {"namespace": NAMESPACE, "uid": UID}
    devices = vmi["spec"]["domain"]["devices"]
    devices["autoattachPodInterface"] = False
    return kvnode.apply_defaults(vmi, "amd64")


@dataclass
class Pod:
    """One launcher pod; made by :func:`launcher_pod`."""

    directory: Path
    first_process: int = 0
    vmi: Mapping[str, Any] = field(default_factory=dict)

    @property
    def vmi_json(self) -> bytes:
        """The VMI as requests carry it."""
        return json.dumps(self.vmi).encode()

    @property
    def share(self) -> Path:
        """The directory that agent and launcher share."""
        return self.directory / "run/kubevirt"

    @property
    def socket(self) -> Path:
        """The launcher's socket."""
        return self.share / "sockets/launcher-sock"

    @property
    def serial(self) -> Path:
        """The guest's serial log."""
        return self.directory / "run/kubevirt-private" / UID / "virt-serial0-log"

    @property
    def log(self) -> str:
        """The container's log."""
        return (self.directory / "log.txt").read_text(errors="replace")

    def pids(self) -> dict[str, int]:
        """Role to process id on this machine, of those that live."""
        return by_role(in_namespaces_of(self.first_process))

    def kill(self, role: str) -> int:
        """SIGKILL; returns the process id."""
        pid = self.pids()[role]
        os.kill(pid, signal.SIGKILL)
        return pid

    def monitor_command(self, command: str) -> None:
        """Run a command of QEMU's own monitor."""
        sockets = (self.directory / "run/libvirt" / name for name in ("virtqemud-sock", "libvirt-sock"))
        socket = next(path for path in sockets if path.exists())
        connection = libvirt.open(f"qemu+unix:///system?socket={socket}")
        try:
            domain = connection.lookupByName(f"{NAMESPACE}_{NAME}")
            libvirt_qemu.qemuMonitorCommand(domain, command, libvirt_qemu.VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP)
        finally:
            connection.close()

    def type(self, text: str) -> None:
        """Type a line into the guest's serial console, and wait until the shell has read it."""
        with socket.socket(socket.AF_UNIX) as console:
            console.settimeout(120)
            console.connect(str(self.serial.with_name("virt-serial0")))
            console.sendall(f"\n{text}\necho $((6 * 7))-typed\n".encode())
            heard = b""
            while b"42-typed" not in heard:
                more = console.recv(4096)
                assert more, f"the console closed after {heard!r}"
                heard += more

    def terminate(self) -> None:
        """What the kubelet does when the pod is deleted."""
        os.kill(self.first_process, signal.SIGTERM)

    @property
    def running(self) -> bool:
        """Whether the container runs."""
        return alive(self.first_process)

    @property
    def status(self) -> int:
        """The container's exit status, once it has ended."""
        return int((self.directory / "status").read_text())

    def wait(self, seconds: float = 120) -> int:
        """Wait for the container's end; returns its exit status."""
        wait_until((self.directory / "status").exists, seconds, f"the end of the pod; its log:\n{self.log}")
        return self.status

    def assert_nothing_left(self, pids: Mapping[str, int]) -> None:
        """No process of the VM and no mount is left, and no socket when nobody killed the launcher; others are in
        directories that go with the pod.
        """
        assert not any(alive(pid) for pid in pids.values())
        assert mounts_below(self.directory) == []
        if self.status == 0:
            agents = self.share / "domain-notify-pipe.sock"
            assert [path for path in self.directory.rglob("*") if path.is_socket() and path != agents] == []


@contextlib.contextmanager
def launcher_pod(
    guest: Guest,
    cache: Path,
    *flags: str,
    environment: Mapping[str, str] | None = None,
    grace: int = 30,
    daemon_conf: str = 'log_outputs = "3:stderr"\n',
    user: int = 0,
    network: Namespace | None = None,
) -> Iterator[Pod]:
    """Start a launcher as the pod's template does; whatever becomes of it, nothing is left afterwards.

    Without a ``network`` of its own it is in this machine's.
    """
    directory = Path(tempfile.mkdtemp(prefix="kvp-"))
    for part in ("run/kubevirt/container-disks", "run/dev-new", "etc", "lib", "log", "bin"):
        (directory / part).mkdir(parents=True)
    directory.chmod(0o755)
    boot = directory / "run/kubevirt/container-disks/kernel-boot"
    boot.mkdir()
    for file in (guest.kernel, guest.initrd):
        shutil.copy(file, boot)
    (directory / "etc/qemu.conf").write_text(_QEMU_CONF.format(user=user))
    for name in ("virtqemud.conf", "libvirtd.conf"):
        (directory / "etc" / name).write_text(daemon_conf)
    launcher = directory / "bin/virt-launcher"
    launcher.write_text(
        f"#!{sys.executable} -P\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from kvnode.launcher.programs.launcher import main\nsys.exit(main())\n"
    )
    launcher.chmod(0o755)
    arguments = ["--qemu-timeout", "60s", "--name", NAME, "--uid", UID, "--namespace", NAMESPACE]
    arguments += ["--kubevirt-share-dir", "/var/run/kubevirt", "--allow-emulation"]
    arguments += ["--container-disk-dir", "/var/run/kubevirt/container-disks"]
    arguments += ["--grace-period-seconds", str(grace), "--hook-sidecars", "0", *flags]
    start = "import sys; sys.argv[0] = '/run/kvnode/bin/virt-launcher-monitor'; "
    start += "from kvnode.launcher.programs.monitor import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *arguments]
    # A shell in front would be the first process; so the monitor's parent is watched from outside for its status.
    script = f"set -e\n{_DEVICES}\n"
    if user:
        command = [*_as_user(user), *command]
        script += f"{_ACCOUNT.format(user=user)}\n{_PYTHON}\nchown {user} /run /run/* /run/kubevirt/*\n"
    script += f"exec {shlex.join(command)} 2>>/run/kvnode/log.txt"
    plan = Plan(str(directory), str(cache), (), False, ("sh", "-c", script))
    (directory / "log.txt").touch()
    pod = Pod(directory)
    inside = [] if network is None else network.command()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    command = [*inside, sys.executable, "-m", "tests.launcher.pod.adopt", plan.to_json()]
    watcher = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        pod.first_process = _first_process(directory, watcher)
        yield pod
    finally:
        _end(pod, watcher)
        shutil.rmtree(directory, ignore_errors=True)


def _as_user(user: int) -> list[str]:
    """Run what follows as a pod without root runs it: the user, and the directories of its libvirt."""
    private = "/var/run/kubevirt-private"
    variables = [f"XDG_CACHE_HOME={private}", f"XDG_CONFIG_HOME={private}", "XDG_RUNTIME_DIR=/var/run"]
    return [
        *("setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"),
        *("--inh-caps", "+net_bind_service", "--ambient-caps", "+net_bind_service"),
        *("env", "HOME=/", *variables),
    ]


def _first_process(directory: Path, watcher: subprocess.Popen[bytes]) -> int:
    """The id of the pod's first process, once its starter, of which the watcher is the parent, has written it down."""
    record = directory / "first-process"
    wait_until(lambda: record.exists() or watcher.poll() is not None, 120, "the pod's first process")
    assert record.exists(), f"the pod does not start: {(directory / 'log.txt').read_text(errors='replace')}"
    return int(record.read_text())


def _end(pod: Pod, watcher: subprocess.Popen[bytes]) -> None:
    """End the pod, if it has not; its process's id may be another's once its parent has seen the end."""
    if not pod.first_process:
        watcher.kill()
    elif not (pod.directory / "status").exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pod.first_process, signal.SIGKILL)
    watcher.wait(120)
