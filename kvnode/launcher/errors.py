"""The error of the launcher."""

from __future__ import annotations


class LauncherError(Exception):
    """The VM cannot go on; ``reason`` is one CamelCase word for its status, the text one line."""

    def __init__(self, reason: str, message: str) -> None:
        """Keep ``message`` on one line."""
        super().__init__(" ".join(message.split()))
        self.reason = reason
