"""What setting a pod's network up can fail with."""

from __future__ import annotations


class NetError(Exception):
    """The network of a pod cannot be read or set up now; the text is one line. Trying again may help."""


class CriticalNetError(NetError):
    """It cannot be set up, and trying again would not help: the VMI fails."""
