"""How much a launcher and its helpers log."""

from __future__ import annotations

import re

from kvnode.api.errors import FieldError
from kvnode.spec.pod.source import PodSource

DEFAULT_VERBOSITY = 2
EXTENDED_VERBOSITY = 5
"""Above it, libvirt and virtiofsd log their debugging messages, too."""

VERBOSITY_VARIABLE = "VIRT_LAUNCHER_LOG_VERBOSITY"

_NUMBER = re.compile(r"\+?[0-9]{1,9}", re.ASCII)


def verbosity(source: PodSource) -> int:
    """The VMI's own verbosity, by its label ``logVerbosity``, or else the cluster's.

    Raises:
        FieldError: the label is no number.
    """
    own = source.labels.get("logVerbosity")
    if own is None:
        return source.config.launcher_log_verbosity
    if not _NUMBER.fullmatch(own):
        raise FieldError(
            "metadata.labels.logVerbosity", f"must be a whole number such as 3, not {own[:40]!r}"
        )
    return int(own)


def logging_variables(source: PodSource) -> list[dict[str, str]]:
    """The environment that sets it in the compute container (``template.go:525-547``)."""
    level = verbosity(source)
    variables = []
    own = source.labels.get("logVerbosity")
    if own is not None or level != DEFAULT_VERBOSITY:
        variables.append({"name": VERBOSITY_VARIABLE, "value": str(level) if own is None else own})
    for label, variable in (
        ("debugLogs", "LIBVIRT_DEBUG_LOGS"),
        ("virtiofsdDebugLogs", "VIRTIOFSD_DEBUG_LOGS"),
    ):
        if level > EXTENDED_VERBOSITY or source.labels.get(label, "").lower() == "true":
            variables.append({"name": variable, "value": "1"})
    return variables
