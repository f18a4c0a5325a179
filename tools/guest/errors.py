"""The one error that building the guest raises."""

from __future__ import annotations


class GuestError(Exception):
    """Building the guest is not possible here; the message says what is missing or wrong, in one line."""
