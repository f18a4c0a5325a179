"""Which version of a protocol two sides speak with each other."""

from __future__ import annotations

from collections.abc import Iterable

from kvnode.rpc.errors import VersionError

#: Versions of ``kubevirt.cmd`` and ``kubevirt.notify`` that this side knows.
CMD_VERSIONS = (1,)
NOTIFY_VERSIONS = (1,)


def highest_common(server: Iterable[int], client: Iterable[int]) -> int:
    """The highest version that is in both (``pkg/handler-launcher-com/common.go``), whatever their order.

    Raises:
        VersionError: there is none.
    """
    server, client = sorted(set(server)), sorted(set(client))
    common = set(server) & set(client)
    if not common:
        raise VersionError(f"no version in common: the server knows {_listed(server)}, we {_listed(client)}")
    return max(common)


def _listed(versions: list[int]) -> str:
    return ", ".join(map(str, versions)) or "none"
