"""The error of the libvirt layer."""

from __future__ import annotations


class VirtError(Exception):
    """libvirt refused or failed; one line, without libvirt's own prefix."""

    def __init__(self, doing: str, cause: Exception | str) -> None:
        """Say what was being done and what libvirt said of it."""
        said = str(cause).strip()
        for prefix in ("internal error: ", "unsupported configuration: ", "XML error: "):
            said = said.removeprefix(prefix)
        super().__init__(" ".join(f"{doing}: {said}".split()))
