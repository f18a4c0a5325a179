"""The one error that building images raises."""

from __future__ import annotations


class ImageError(Exception):
    """Building the images is not possible here; the message says what is missing or wrong."""
