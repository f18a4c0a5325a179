"""The domain as it is told to the agent (``pkg/virt-launcher/virtwrap/manager.go:2241``)."""

from __future__ import annotations

from typing import Any

import libvirt

from kvnode.launcher.manager.errors import is_not_found
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.states import state_name, told_reason
from kvnode.virt.domain_json import make_status, new_domain, read_spec


def read_domain(host: Host) -> dict[str, Any] | None:
    """The domain with its state and the launcher's metadata; None when there is none. Blocks.

    Raises libvirtError, DomainFormatError.
    """
    domain = host.lookup()
    if domain is None:
        return None
    try:
        spec = read_spec(domain.XMLDesc(0))
        state, reason = domain.state()
    except libvirt.libvirtError as error:
        if is_not_found(error):
            return None
        raise
    return new_domain(
        host.options.namespace,
        host.options.name,
        spec=spec,
        status=make_status(
            Status=state_name(state), Reason=told_reason(state, reason, has_run=host.has_run())
        ),
        metadata=host.metadata.snapshot(),
    )
