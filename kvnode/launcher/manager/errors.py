"""What a manager refuses, and how errors are told to the agent."""

from __future__ import annotations

import libvirt

#: Characters of an error that are told: it may quote what was asked for, of any length.
_LONGEST = 1000


class ManagerError(Exception):
    """A request that cannot be carried out; the text is one line for the agent and its user."""

    def __init__(self, message: str) -> None:
        """Keep ``message`` on one line."""
        super().__init__(" ".join(message.split()))


class NotSupportedError(ManagerError):
    """A request for what this launcher does not do."""

    def __init__(self, what: str) -> None:
        """``what`` is a noun: ``live migration``."""
        super().__init__(f"{what} is not supported by this launcher")


class NoDomainError(ManagerError):
    """There is no domain to act on."""

    def __init__(self, name: str) -> None:
        """``name`` is the domain's."""
        super().__init__(f"there is no domain {name}")


class ExecExit(Exception):  # noqa: N818 - not an error of this program: the guest's command ran
    """A command in the guest that ended with another code than 0."""

    def __init__(self, code: int, output: str) -> None:
        """``output`` is what it printed."""
        super().__init__(f"the command ended with code {code}")
        self.code = code
        self.output = output


class CheckpointInvalidError(Exception):
    """A checkpoint that can never be made known to libvirt."""


def is_not_found(error: libvirt.libvirtError) -> bool:
    """Whether libvirt does not know the domain."""
    return bool(error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN)


def describe(error: BaseException) -> str:
    """An error in one line.

    libvirt's keep their numbers, as the reference spells them: its node agent and users' tools look for them
    (``pkg/virt-launcher/virtwrap/errors/errors.go:FormatLibvirtError``).
    """
    if isinstance(error, libvirt.libvirtError) and error.err is not None:
        text = _line(error.get_error_message() or "")
        code, domain = error.get_error_code(), error.get_error_domain()
        return f"LibvirtError(Code={code}, Domain={domain}, Message='{text}')"
    return _line(str(error)) or type(error).__name__


def _line(text: str) -> str:
    """One line that UTF-8 can carry."""
    line = " ".join(text.split()).encode("utf-8", "replace").decode()
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
