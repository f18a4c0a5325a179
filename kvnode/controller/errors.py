"""What keeps an object from what it should be."""

from __future__ import annotations


class SyncError(Exception):
    """Something about one object that its status is to tell.

    `reason` is one of the API's words (`kvnode.controller.names`), the text is for people.
    """

    requeue = True
    """Whether trying again by itself may help."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return self.message


class WaitingError(SyncError):
    """Something that another party must do first; its doing will be seen."""

    requeue = False
