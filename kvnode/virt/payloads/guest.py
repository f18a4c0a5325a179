"""What the guest agent tells (``staging/src/kubevirt.io/api/core/v1/types.go:2886``)."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import BOOL, FLOAT, INT64
from kvnode.virt.domain_json.shape import empties, many, struct, text, unless_empty, value
from kvnode.virt.payloads.kubernetes import LIST_META, TYPE_META

COMMAND = struct(text("name"), unless_empty(value("enabled", BOOL)))
OS = struct(
    *empties(
        text("name"),
        text("kernelRelease"),
        text("version"),
        text("prettyName"),
        text("versionId"),
        text("kernelVersion"),
        text("machine"),
        text("id"),
    )
)
#: ``loginTime`` is in seconds since the epoch, with a fraction.
USER = struct(text("userName"), *empties(text("domain"), value("loginTime", FLOAT)))
DISK = struct(unless_empty(text("serial")), text("busType"))
#: Sizes in bytes.
FILESYSTEM = struct(
    text("diskName"),
    text("mountPoint"),
    text("fileSystemType"),
    value("usedBytes", INT64),
    value("totalBytes", INT64),
    unless_empty(many("disk", "", DISK)),
)
FILESYSTEMS = struct(many("disks", "", FILESYSTEM))

AGENT_INFO = struct(
    *TYPE_META,
    unless_empty(text("guestAgentVersion")),
    unless_empty(many("supportedCommands", "", COMMAND)),
    unless_empty(text("hostname")),
    value("os", OS),
    unless_empty(text("timezone")),
    unless_empty(many("userList", "", USER)),
    value("fsInfo", FILESYSTEMS),
    unless_empty(text("fsFreezeStatus")),
)

# What a client puts together from the lists.
USER_LIST = struct(*TYPE_META, value("metadata", LIST_META), many("items", "", USER))
FILESYSTEM_LIST = struct(*TYPE_META, value("metadata", LIST_META), many("items", "", FILESYSTEM))
