"""The one error of standalone mode."""

from __future__ import annotations

#: The manifest, an option or the VM itself is wrong.
EXIT_FAILED = 1
#: No VM of that name is known.
EXIT_NOT_FOUND = 3
#: A VM of that name runs already.
EXIT_EXISTS = 4
#: This machine lacks something: root, libvirt, QEMU, space, huge pages.
EXIT_ENVIRONMENT = 5


class StandaloneError(Exception):
    """What a user can be told in one line.

    ``exit_code`` is what the command line exits with (the ``EXIT_*`` names above); ``field`` is the path in
    the manifest that is at fault, or empty when no field is.
    """

    def __init__(self, message: str, *, exit_code: int = EXIT_FAILED, field: str = "") -> None:
        """Keep ``message`` on one line and put the field's path before it."""
        text = " ".join(message.split())
        super().__init__(f"{field}: {text}" if field else text)
        self.message = text
        self.exit_code = exit_code
        self.field = field
