"""Backups and their checkpoints (``staging/src/kubevirt.io/api/backup/v1alpha1/types.go:41``)."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import BOOL, TEXT, TIME
from kvnode.virt.domain_json.shape import empties, many, optional, struct, text, value

BACKUP_OPTIONS = struct(
    *empties(
        text("backupName"),
        text("cmd"),
        text("mode"),
        optional("backupStartTime", "", TIME),
        optional("incremental", "", TEXT),
        optional("targetPath", "", TEXT),
        value("skipQuiesce", BOOL),
        optional("exportServerAddr", "", TEXT),
        optional("exportServerName", "", TEXT),
        optional("backupKey", "", TEXT),
        optional("backupCert", "", TEXT),
        optional("caCert", "", TEXT),
    )
)
VOLUME_INFO = struct(
    text("volumeName"), text("diskTarget"), *empties(text("dataEndpoint"), text("mapEndpoint"))
)
BACKUP_CHECKPOINT = struct(
    *empties(text("name"), optional("creationTime", "", TIME), many("volumes", "", VOLUME_INFO))
)
