"""KubeVirt's own metadata of a domain."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import BOOL, INT64, TIME
from kvnode.virt.domain_json.shape import one, optional, struct, text

GRACE_PERIOD_METADATA = struct(
    one("DeletionGracePeriodSeconds", "deletionGracePeriodSeconds", INT64),
    optional("DeletionTimestamp", "deletionTimestamp", TIME),
    optional("MarkedForGracefulShutdown", "markedForGracefulShutdown", BOOL),
)
MIGRATION_METADATA = struct(
    text("UID", "uid"),
    optional("StartTimestamp", "startTimestamp", TIME),
    optional("EndTimestamp", "endTimestamp", TIME),
    one("Failed", "failed", BOOL),
    text("FailureReason", "failureReason"),
    text("AbortStatus", "abortStatus"),
    text("Mode", "mode"),
)
BACKUP_METADATA = struct(
    text("Name", "name"),
    text("Mode", "mode"),
    one("SkipQuiesce", "skipQuiesce", BOOL),
    optional("StartTimestamp", "startTimestamp", TIME),
    optional("EndTimestamp", "endTimestamp", TIME),
    one("Completed", "completed", BOOL),
    one("Failed", "failed", BOOL),
    text("BackupMsg", "backupMsg"),
    text("CheckpointName", "checkpointName"),
    text("Volumes", "volumes"),
    text("QuiesceStatus", "quiesceStatus"),
)
ACCESS_CREDENTIAL_METADATA = struct(
    one("Succeeded", "succeeded", BOOL),
    text("Message", "message"),
)
MEMORY_DUMP_METADATA = struct(
    text("FileName", "fileName"),
    optional("StartTimestamp", "startTimestamp", TIME),
    optional("EndTimestamp", "endTimestamp", TIME),
    one("Completed", "completed", BOOL),
    one("Failed", "failed", BOOL),
    text("FailureReason", "failureReason"),
)
KUBE_VIRT_METADATA = struct(
    text("UID", "uid"),
    optional("GracePeriod", "graceperiod", GRACE_PERIOD_METADATA),
    optional("Migration", "migration", MIGRATION_METADATA),
    optional("Backup", "backup", BACKUP_METADATA),
    optional("AccessCredential", "accessCredential", ACCESS_CREDENTIAL_METADATA),
    optional("MemoryDump", "memoryDump", MEMORY_DUMP_METADATA),
)
METADATA = struct(
    one("KubeVirt", "{http://kubevirt.io}kubevirt", KUBE_VIRT_METADATA),
)
