"""What several sections share."""

from __future__ import annotations

from typing import Any

from kvnode.virt.domain_json.scalars import BOOL, UINT64
from kvnode.virt.domain_json.shape import Struct, one, struct, text

ADDRESS = struct(
    text("Type", "@type"),
    text("Domain", "@domain"),
    text("Bus", "@bus"),
    text("Slot", "@slot"),
    text("Function", "@function"),
    text("Controller", "@controller"),
    text("Target", "@target"),
    text("Unit", "@unit"),
    text("UUID", "@uuid"),
    text("Device", "@device"),
    text("CSSID", "@cssid"),
    text("SSID", "@ssid"),
    text("DevNo", "@devno"),
)
BOOT_ORDER = struct(
    one("Order", "@order", UINT64),
)
MEMORY = struct(
    one("Value", ".", UINT64),
    text("Unit", "@unit"),
)


def _user_defined(alias: dict[str, Any]) -> None:
    """Part a user's alias from the prefix that libvirt wants on it."""
    if alias["Name"].startswith(USER_ALIAS_PREFIX):
        alias.update(Name=alias["Name"].removeprefix(USER_ALIAS_PREFIX), UserDefined=True)


#: libvirt takes a user's own alias for a device only behind this.
USER_ALIAS_PREFIX = "ua-"

ALIAS = Struct(text("Name", "@name"), one("UserDefined", "", BOOL), after_xml=_user_defined)
