"""How a migration is to be done (``pkg/virt-handler/cmd-client/client.go:71``): times in seconds, but for
MaxDowntimeMs.
"""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import BOOL, FLOAT, INT64, QUANTITY, TEXT, UINT64
from kvnode.virt.domain_json.shape import optional, struct, value

STALL_DETECTOR_OPTIONS = struct(
    value("StallMargin", FLOAT),
    value("StallProgressTimeout", UINT64),
    value("SwitchoverTimeout", UINT64),
    value("EwmaAlpha", FLOAT),
    value("PrecopyPossibleFactor", FLOAT),
    value("PatienceWindowDecayFactor", FLOAT),
    value("SearchLocalMinima", BOOL),
    value("CompletionTimeoutFactor", FLOAT),
)
MIGRATION_OPTIONS = struct(
    value("Bandwidth", QUANTITY),
    value("ProgressTimeout", INT64),
    value("CompletionTimeoutPerGiB", INT64),
    value("MaxDowntimeMs", UINT64),
    value("UnsafeMigration", BOOL),
    value("AllowAutoConverge", BOOL),
    value("AllowPostCopy", BOOL),
    optional("ParallelMigrationThreads", "", UINT64),
    value("AllowWorkloadDisruption", BOOL),
    optional("StallDetectorOptions", "", STALL_DETECTOR_OPTIONS),
    optional("Compression", "", TEXT),
)
