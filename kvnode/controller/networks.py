"""Network settings that a VM may not be created with (``pkg/network/admitter/validator.go:64``)."""

from __future__ import annotations

from typing import Any

from kvnode.api.errors import FieldError

_INTERFACES = "spec.domain.devices.interfaces"


def check_new_networks(spec: dict[str, Any]) -> None:
    """Refuse bindings that went in v1.3, which a VM from before may still name.

    Raises:
        FieldError: the first interface at fault.
    """
    interfaces = (spec.get("domain") or {}).get("devices", {}).get("interfaces") or ()
    for index, interface in enumerate(interfaces):
        path = f"{_INTERFACES}[{index}]"
        for gone in ("slirp", "macvtap", "passt"):
            if interface.get(gone) is not None:
                raise FieldError(
                    f"{path}.{gone}", "is no longer there: use masquerade, bridge or a binding plugin"
                )
