"""What is wrong with a domain's XML or JSON."""

from __future__ import annotations


class DomainFormatError(ValueError):
    """A domain that cannot be read. ``path`` is where (``domain/vcpu``), ``message`` what would be right."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(path, message)
        self.path = path
        self.message = message

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def within(self, outer: str) -> DomainFormatError:
        """The same, seen from one element further out."""
        separator = "" if not self.path or self.path.startswith("@") else "/"
        return DomainFormatError(f"{outer}{separator}{self.path}", self.message)
