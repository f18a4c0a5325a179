"""What an informer tells, as it can be compared."""

from __future__ import annotations

from kvnode.kube.informer import Change, Informer


class Diary:
    """What a handler is told."""

    def __init__(self, informer: Informer) -> None:
        self.lines: list[str] = []
        informer.add_handler(self)

    def __call__(self, change: Change) -> None:
        word = "added" if change.added else "deleted" if change.deleted else "changed"
        self.lines.append(f"{word} {change.object['metadata']['name']}")
