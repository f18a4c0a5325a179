"""Exceptions that cross package borders."""

from __future__ import annotations

__all__ = ["ConversionError", "FieldError"]


class FieldError(ValueError):
    """Something is wrong with one field.

    `field` is its path (`spec.domain.cpu.cores`), "" for the object as a whole; `message` says what is wrong and
    what would be right.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ConversionError(FieldError):
    """A VMI, or the context given with it, that no libvirt domain can be made of.

    `index` is the VMI's place among those given to convert_many, None elsewhere.
    """

    index: int | None = None
