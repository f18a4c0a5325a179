"""What this launcher does not do. The command server reads and checks such requests all the same."""

from __future__ import annotations

from typing import NoReturn

from kvnode.launcher.manager.errors import NotSupportedError

_MIGRATION, _BACKUP, _ENCRYPTION = "live migration", "backup", "the encryption of guests (SEV)"


class Unsupported:
    """Refuses live migration, backups and the secrets of encrypted guests."""

    async def migrate(self, *_request: object) -> NoReturn:
        """Not supported."""
        raise NotSupportedError(_MIGRATION)

    async def cancel_migration(self, *_request: object) -> NoReturn:
        """Not supported."""
        raise NotSupportedError(_MIGRATION)

    async def prepare_migration_target(self, *_request: object) -> NoReturn:
        """Not supported."""
        raise NotSupportedError(_MIGRATION)

    async def finalize_migration(self, *_request: object) -> NoReturn:
        """Not supported."""
        raise NotSupportedError(_MIGRATION)

    async def backup(self, *_request: object) -> NoReturn:
        """Not supported."""
        raise NotSupportedError(_BACKUP)

    async def redefine_checkpoint(self, *_request: object) -> NoReturn:
        """Not supported."""
        raise NotSupportedError(_BACKUP)

    async def sev_info(self) -> NoReturn:
        """Not supported."""
        raise NotSupportedError(_ENCRYPTION)

    async def launch_measurement(self, *_request: object) -> NoReturn:
        """Not supported."""
        raise NotSupportedError(_ENCRYPTION)

    async def inject_launch_secret(self, *_request: object) -> NoReturn:
        """Not supported."""
        raise NotSupportedError(_ENCRYPTION)
