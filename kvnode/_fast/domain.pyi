from collections.abc import Iterator
from typing import final

@final
class Converter:
    """A converter context, bound once; immutable, and shared by any number of threads."""

    def __new__(cls, context: bytes) -> Converter:
        """`context`: the mapping of the converter context as JSON. Raises ConversionError."""

    def convert(self, vmi: bytes) -> bytes:
        """The domain XML of a VMI given as JSON, UTF-8. Raises ConversionError."""

    def convert_share(self, vmis: list[bytes], results: list[object], counter: Iterator[int]) -> int:
        """Fills `results` from `vmis`, one thread of those that share `counter`; answers how many failed."""
