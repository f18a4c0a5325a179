"""The one error of the cluster tool."""

from __future__ import annotations


class ClusterError(Exception):
    """Something that the user can act on: one line that says what is missing or went wrong."""
