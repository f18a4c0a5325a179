"""Finalizers, annotations, labels and reasons that the controllers write and read.

``staging/src/kubevirt.io/api/core/v1/types.go``, ``pkg/controller/controller.go:55-120``,
``pkg/virt-controller/watch/vm/vm.go:76-130``.
"""

VM_FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
VMI_FINALIZER = "kubevirt.io/foregroundDeleteVirtualMachine"
OLD_VMI_FINALIZER = "foregroundDeleteVirtualMachine"
ORPHAN_FINALIZER = "orphan"

LATEST_API_ANNOTATION = "kubevirt.io/latest-observed-api-version"
STORAGE_API_ANNOTATION = "kubevirt.io/storage-observed-api-version"
API_OBSERVED = "v1"

GENERATION_ANNOTATION = "kubevirt.io/vm-generation"
MIGRATION_TARGET_ANNOTATION = "kubevirt.io/create-migration-target"
MIGRATION_TARGET_NODE_LABEL = "kubevirt.io/migrationTargetNodeName"
RESTORE_RUN_STRATEGY_ANNOTATION = "kubevirt.io/restore-run-strategy"
IMMEDIATE_DATA_VOLUMES_ANNOTATION = "kubevirt.io/immediate-data-volume-creation"
ALLOW_ADOPTION_ANNOTATION = "cdi.kubevirt.io/allowClaimAdoption"
PCI_SLOT_COUNT_ANNOTATION = "kubevirt.io/pci-interface-slot-count"
SKIP_BACKUP_HOOKS_ANNOTATION = "kubevirt.io/skip-backup-hooks"
TEMPORARY_POD_ANNOTATION = "kubevirt.io/ephemeral-provisioning"
MIGRATION_TRANSPORT_ANNOTATION = "kubevirt.io/migrationTransportUnix"
MEMORY_OVERHEAD_ANNOTATION = "kubevirt.io/memory-overhead-bytes"
OUTDATED_IMAGE_LABEL = "kubevirt.io/outdatedLauncherImage"
OVERHEAD_RATIO_LABEL = "kubevirt.io/memory-hotplug-overhead-ratio"

EVICT_ONLY_ANNOTATION = "descheduler.alpha.kubernetes.io/request-evict-only"
EVICTION_IN_PROGRESS_ANNOTATION = "descheduler.alpha.kubernetes.io/eviction-in-progress"
DESCHEDULER_ANNOTATIONS = (
    "descheduler.alpha.kubernetes.io/evict",
    "descheduler.alpha.kubernetes.io/prefer-no-eviction",
)
BACKUP_HOOK_ANNOTATIONS = (
    "pre.hook.backup.velero.io/container",
    "pre.hook.backup.velero.io/command",
    "pre.hook.backup.velero.io/timeout",
    "post.hook.backup.velero.io/container",
    "post.hook.backup.velero.io/command",
)

SUCCESSFUL_CREATE = "SuccessfulCreate"
FAILED_CREATE = "FailedCreate"
SUCCESSFUL_DELETE = "SuccessfulDelete"
FAILED_DELETE = "FailedDelete"
FAILED_UPDATE = "FailedUpdateError"
FAILED_PVC_NOT_FOUND = "FailedPvcNotFound"
FAILED_DATA_VOLUME_IMPORT = "FailedDataVolumeImport"
FAILED_GUARANTEE_RESOURCES = "FailedGuaranteeResources"
FAILED_POD_PATCH = "FailedPodPatch"
FAILED_HOTPLUG_SYNC = "FailedHotplugSync"
FAILED_CREATE_VALIDATION = "FailedCreateValidation"
NODE_UNRESPONSIVE = "NodeUnresponsive"
IMAGE_PULL_REASONS = ("ErrImagePull", "ImagePullBackOff")
