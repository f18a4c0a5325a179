"""The error of the DHCP servers."""

from __future__ import annotations


class DhcpError(ValueError):
    """A server cannot be set up; the text is one line that names the interface, field or file."""
