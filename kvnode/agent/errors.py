"""What a pass over a VMI can fail with."""

from __future__ import annotations

from kvnode.api.errors import FieldError
from kvnode.kube.errors import KubeError
from kvnode.rpc.errors import RpcError, VersionError


class AgentError(Exception):
    """Something that the agent could not do for a VMI; the text goes into its condition and its event."""


class CriticalNetworkError(AgentError):
    """The pod's network cannot be set up, and trying again would not help: the VMI fails."""


class SecureBootError(AgentError):
    """The launcher has no firmware for what the VMI asks: it fails."""


class IrrecoverableError(AgentError):
    """The domain can never run again: the VMI fails."""


class SeveralLaunchersError(AgentError):
    """Launchers of several pods could be the VM's; that may last, and its owner has to know."""


class HotplugWaitingError(AgentError):
    """A hot-plugged volume is not there yet; it is looked for again in a second."""


FAILURES = (AgentError, RpcError, VersionError, KubeError, FieldError, OSError, EOFError)
"""All that launchers, mounts and the API server fail with. Anything else is a fault of the program."""


def is_caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether ``error`` is, or was raised from, a ``kind``."""
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__
    return False


def is_disconnected(error: BaseException) -> bool:
    """Whether the launcher went away under a call, so that nobody is left to do what was asked.

    A launcher that ends its VM itself cuts the connection. One that cannot be reached at all is another matter: the
    call comes again (``pkg/virt-handler/cmd-client/errors.go:59-90``).
    """
    if isinstance(error, RpcError):
        return error.code == "CANCELLED"
    return isinstance(error, ConnectionResetError | EOFError)
