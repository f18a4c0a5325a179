"""Feature gates of KubeVirt v1.9, by how they start out.

``pkg/virt-config/featuregate/active.go`` and ``inactive.go``.
"""

ALWAYS_ON = frozenset(
    {
        "AutoResourceLimitsGate",
        "BochsDisplayForEFIGuests",
        "CPUNodeDiscovery",
        "ClusterProfiler",
        "CommonInstancetypesDeploymentGate",
        "DisableCustomSELinuxPolicy",
        "DynamicPodInterfaceNaming",
        "EnableVirtioFsConfigVolumes",
        "ExpandDisks",
        "GPU",
        "HotplugNICs",
        "InstancetypeReferencePolicy",
        "LiveMigration",
        "LiveUpdateNADRef",
        "MigrationPriorityQueue",
        "NUMA",
        "NetworkBindingPlugins",
        "NonRoot",
        "PSA",
        "PanicDevices",
        "PersistentReservation",
        "SRIOVLiveMigration",
        "SecureExecution",
        "VMExport",
        "VMLiveUpdateFeatures",
        "VMPersistentState",
        "VideoConfig",
        "VolumeMigration",
        "VolumesUpdateStrategy",
    }
)
"""Generally available: on, and no configuration turns them off."""

DEFAULT_ON = frozenset(
    {
        "DeclarativeHotplugVolumes",
        "ExternalNetResourceInjection",
        "GPUsWithDRA",
        "HostDevicesWithDRA",
        "ImageVolume",
        "KubevirtSeccompProfile",
        "LibvirtHooksServerAndClient",
        "NodeRestriction",
        "OptOutRoleAggregation",
        "PasstBinding",
        "PodSecondaryInterfaceNamingUpgrade",
        "RebootPolicy",
        "Snapshot",
        "Template",
        "VmiMemoryOverheadReport",
        "WorkloadEncryptionSEV",
    }
)
"""Beta: on unless ``disabledFeatureGates`` names them."""

DEFAULT_OFF = frozenset(
    {
        "AlignCPUs",
        "CPUManager",
        "ConfigurableHypervisor",
        "ContainerPathVolumes",
        "CrossArchitectureVirtualization",
        "DecentralizedLiveMigration",
        "DisableMDEVConfiguration",
        "DockerSELinuxMCSWorkaround",
        "DownwardMetrics",
        "EnableVirtioFsStorageVolumes",
        "ExperimentalIgnitionSupport",
        "ExperimentalVirtiofsSupport",
        "FirmwareAutoSelection",
        "GraceIOVirtualization",
        "HostDevices",
        "HostDisk",
        "HotplugVolumes",
        "HypervStrictCheck",
        "IOMMUFD",
        "IncrementalBackup",
        "Macvtap",
        "MigrationStallDetection",
        "MultiArchitecture",
        "NetworkDevicesWithDRA",
        "OCIExport",
        "ObjectGraph",
        "PCINUMAAwareTopology",
        "Passt",
        "PasstIPStackMigration",
        "Plugins",
        "PortRangesSpec",
        "ReservedOverheadMemlock",
        "Root",
        "Sidecar",
        "UtilityVolumes",
        "VGPULiveMigration",
        "VMStatsCollector",
        "VSOCK",
        "WorkloadEncryptionTDX",
    }
)
"""Alpha, deprecated and discontinued: off unless ``featureGates`` names them."""
