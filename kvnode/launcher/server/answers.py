"""How outcomes become answers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

import libvirt

from kvnode.api.errors import FieldError
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.manager.errors import CheckpointInvalidError, ExecExit, ManagerError, describe
from kvnode.rpc.cmd_v1_pb2 import Response
from kvnode.virt.domain_json.gojson import encode, encode_many
from kvnode.virt.domain_json.shape import Struct
from kvnode.virt.errors import VirtError

logger = logging.getLogger("kvnode.launcher.server")

#: Errors whose text is meant for the agent and its user.
_TOLD = (
    ManagerError,
    LauncherError,
    VirtError,
    FieldError,
    libvirt.libvirtError,
    OSError,  # no space left, no more files to open: the machine's fault
    CheckpointInvalidError,
    ExecExit,
)


def success(message: str = "") -> Response:
    """An answer that says yes."""
    return Response(success=True, message=message)


def failure(doing: str, error: Exception) -> Response:
    """An answer that says no, and why; the log has it too, with the way there where it was not foreseen."""
    text = describe(error)
    if isinstance(error, _TOLD):
        logger.warning("%s: %s", doing, text)
    else:
        logger.error("%s failed", doing, exc_info=error)
        text = f"{doing}: {type(error).__name__}: {text}"
    return Response(success=False, message=text)


async def outcome(doing: str, work: Awaitable[object]) -> Response:
    """Do the work; yes if it raises nothing."""
    try:
        await work
    except Exception as error:
        return failure(doing, error)
    return success()


def one(struct: Struct, value: Mapping[str, Any] | None) -> str:
    """A value as JSON, byte for byte as the reference's; None is ``null``."""
    return "null" if value is None else encode(struct, value)


def many(struct: Struct, values: Sequence[Mapping[str, Any]] | None) -> str:
    """A list of values as JSON; None is ``null``."""
    return encode_many(struct, None if values is None else list(values))
