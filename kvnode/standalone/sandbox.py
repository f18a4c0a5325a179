"""The namespaces of one VM: its part of the state directory laid over the paths that a pod's domain XML
names.

``python -m kvnode.standalone.sandbox PLAN`` reads a plan (JSON: see :class:`Plan`), leaves the caller's mount
and PID namespaces, and becomes, as process 1 of the new ones, the launcher's monitor. All mounts live in the
new mount namespace only, so that they end with its last process: killing process 1 ends the VM whole.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from kvnode.standalone import linux, records

#: Where the VM's directory itself is found inside the namespaces.
VM_DIRECTORY = "/run/kvnode"

#: Part of the VM's directory -> the path that it is laid over. /run comes last: what lies under it is mounted
#: first.
_LIBVIRT_DIRECTORIES = {
    "etc": "/etc/libvirt",
    "lib": "/var/lib/libvirt",
    "log": "/var/log/libvirt",
}

_LIBVIRT_CACHE = "/var/cache/libvirt"

_USER = "libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin"
_GROUP = "libvirt-qemu:x:64055:"


@dataclass(frozen=True)
class Bind:
    """A file or directory of this machine shown to the VM's processes."""

    source: str
    """Absolute path on this machine."""

    target: str
    """Absolute path inside, under /run."""

    read_only: bool


@dataclass(frozen=True)
class Plan:
    """What is to be set up, and the command that becomes process 1."""

    directory: str
    """The VM's directory."""

    libvirt_cache: str
    """Directory for libvirt's cache, which VMs share: probing QEMU anew takes more than a second."""

    binds: tuple[Bind, ...]
    huge_pages: bool
    """Make sure that /dev/hugepages is mounted."""

    command: tuple[str, ...]

    def to_json(self) -> str:
        """Return the plan as :func:`main` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan back."""
        raw = json.loads(text)
        binds = tuple(Bind(**bind) for bind in raw["binds"])
        return cls(raw["directory"], raw["libvirt_cache"], binds, raw["huge_pages"], tuple(raw["command"]))


def main(argv: list[str]) -> int:
    """Set up the namespaces of the plan in ``argv[0]`` and run its command in them; 0 once that has begun."""
    plan = Plan.from_json(argv[0])
    try:
        linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWPID)
    except OSError as error:
        return _fail("new mount and PID namespaces", error)
    ready, go = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        os.close(go)
        if os.read(ready, 1) != b"x":  # go on only when this process is on record
            os._exit(1)
        _become_first_process(plan)
    os.close(ready)
    try:
        records.write_process(Path(plan.directory) / records.LAUNCHER_PID, child)
    except OSError as error:
        return _fail("the record of its first process", error)  # which ends when this process does
    os.write(go, b"x")
    return 0


def _become_first_process(plan: Plan) -> None:
    """Mount everything, then become the plan's command; never returns."""
    try:
        _mount(plan)
        os.chdir("/")
        os.execvp(plan.command[0], list(plan.command))  # noqa: S606
    except OSError as error:
        _fail("the VM's namespaces", error)
        os._exit(1)


def _mount(plan: Plan) -> None:
    _keep_mounts_to_ourselves()
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    directory = Path(plan.directory)
    run = str(directory / "run")
    linux.bind(run, run, recursive=False)  # a mount of its own, so that what is mounted in it moves with it
    resolver = _resolver()
    inside = directory / "run" / VM_DIRECTORY.removeprefix("/run/")
    inside.mkdir(exist_ok=True)
    linux.bind(plan.directory, str(inside), recursive=False)
    for bind in plan.binds:
        _bind_in_run(Path(run), bind)
    for part, target in _LIBVIRT_DIRECTORIES.items():
        Path(target).mkdir(parents=True, exist_ok=True)
        linux.bind(str(directory / part), target)
    Path(_LIBVIRT_CACHE).mkdir(parents=True, exist_ok=True)
    linux.bind(plan.libvirt_cache, _LIBVIRT_CACHE)
    _bind_accounts(directory)
    if plan.huge_pages and not os.path.ismount("/dev/hugepages"):
        Path("/dev/hugepages").mkdir(exist_ok=True)
        linux.mount("hugetlbfs", "/dev/hugepages", "hugetlbfs")
    var_run = Path("/var/run").resolve()
    linux.move(run, "/run")
    if var_run != Path("/run"):
        linux.bind("/run", "/var/run")
    if resolver is not None:
        resolver[0].parent.mkdir(parents=True, exist_ok=True)
        resolver[0].write_bytes(resolver[1])


def _keep_mounts_to_ourselves() -> None:
    try:
        linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    except OSError as error:
        if error.errno == errno.EINVAL:
            why = "the root directory is no mount point (a chroot?): bind-mount it on itself first"
            raise OSError(error.errno, why) from None
        raise


def _bind_in_run(run: Path, bind: Bind) -> None:
    target = run / bind.target.removeprefix("/var").removeprefix("/run/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if Path(bind.source).is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    linux.bind(bind.source, str(target), read_only=bind.read_only)


def _bind_accounts(directory: Path) -> None:
    """Show /etc/passwd and /etc/group with the account that Debian's libvirt was built for, where they lack
    it.

    The QEMU driver does not start without it, although the configuration names root; Debian's
    libvirt-daemon-system would make the account, and is not needed for anything else.
    """
    for file, account in (("passwd", _USER), ("group", _GROUP)):
        path = Path("/etc", file)
        lines = path.read_text(encoding="utf-8", errors="surrogateescape")
        name = account.partition(":")[0] + ":"
        if any(line.startswith(name) for line in lines.splitlines()):
            continue
        copy = directory / file
        end = "" if lines.endswith("\n") or not lines else "\n"
        copy.write_text(f"{lines}{end}{account}\n", encoding="utf-8", errors="surrogateescape")
        linux.bind(str(copy), str(path))


def _resolver() -> tuple[Path, bytes] | None:
    """Return path and content of a resolv.conf that lies under /run, where it is about to be covered."""
    path = Path("/etc/resolv.conf").resolve()
    if not path.is_relative_to("/run"):
        return None
    try:
        return path, path.read_bytes()
    except OSError:
        return None


def _fail(what: str, error: OSError) -> int:
    place = f" ({error.filename})" if error.filename else ""
    sys.stderr.write(f"sandbox: cannot set up {what}: {error.strerror}{place}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
