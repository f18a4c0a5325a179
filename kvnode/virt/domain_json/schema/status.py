"""A domain's state, and what its guest agent told."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import INT64, TEXT, UINT64
from kvnode.virt.domain_json.shape import many, one, optional, struct, text

INTERFACE_STATUS = struct(
    text("Mac", ""),
    text("Ip", ""),
    many("IPs", "", TEXT),
    text("InterfaceName", ""),
)
GUEST_OS_INFO = struct(
    text("Name", ""),
    text("KernelRelease", ""),
    text("Version", ""),
    text("PrettyName", ""),
    text("VersionId", ""),
    text("KernelVersion", ""),
    text("Machine", ""),
    text("Id", ""),
)
FS_FREEZE = struct(
    text("Status", ""),
)
GUEST_PANIC_INFO = struct(
    text("Type", ""),
    one("Arg1", "", UINT64),
    one("Arg2", "", UINT64),
    one("Arg3", "", UINT64),
    one("Arg4", "", UINT64),
    one("Arg5", "", UINT64),
)
DOMAIN_STATUS = struct(
    text("Status", ""),
    text("Reason", ""),
    many("Interfaces", "", INTERFACE_STATUS),
    one("OSInfo", "", GUEST_OS_INFO),
    one("FSFreezeStatus", "", FS_FREEZE),
    optional("GuestPanicInfo", "", GUEST_PANIC_INFO),
    one("PanicCount", "", INT64),
)
