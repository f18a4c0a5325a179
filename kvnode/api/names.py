"""Labels, annotations and other names of the KubeVirt API.

``staging/src/kubevirt.io/api/core/v1/types.go:1124-1475``
"""

GROUP = "kubevirt.io"
API_VERSION = "kubevirt.io/v1"
VIRTUAL_MACHINE = "VirtualMachine"
VIRTUAL_MACHINE_INSTANCE = "VirtualMachineInstance"

# Read from a VM, by the converter and the launcher.
IGNITION_ANNOTATION = "kubevirt.io/ignitiondata"
MEMFD_ANNOTATION = "kubevirt.io/memfd"
PLACE_PCI_DEVICES_ON_ROOT_COMPLEX_ANNOTATION = "kubevirt.io/placePCIDevicesOnRootComplex"
FREE_PAGE_REPORTING_DISABLED_ANNOTATION = "kubevirt.io/free-page-reporting-disabled"
LIBVIRT_LOG_FILTERS_ANNOTATION = "kubevirt.io/libvirt-log-filters"
KEEP_LAUNCHER_AFTER_FAILURE_ANNOTATION = "kubevirt.io/keep-launcher-alive-after-failure"
EMULATOR_THREAD_COMPLETE_TO_EVEN_PARITY_ANNOTATION = "alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity"
DEPRECATED_NON_ROOT_ANNOTATION = "kubevirt.io/nonroot"

# Written onto a VM by defaulting.
PCI_TOPOLOGY_VERSION_ANNOTATION = "kubevirt.io/pci-topology-version"
PCI_TOPOLOGY_VERSION_V3 = "v3"
QGS_SOCKET_PATH_ANNOTATION = "kubevirt.io/qgs-socket-path"

# On a launcher pod.
DOMAIN_ANNOTATION = "kubevirt.io/domain"
APP_LABEL = "kubevirt.io"
LAUNCHER_APP = "virt-launcher"
CREATED_BY_LABEL = "kubevirt.io/created-by"
VIRTUAL_MACHINE_NAME_LABEL = "vm.kubevirt.io/name"
VIRTUAL_MACHINE_INSTANCE_ID_LABEL = "vmi.kubevirt.io/id"
UNPAUSED_READINESS_GATE = "kubevirt.io/virtual-machine-unpaused"

# On a VirtualMachineInstance.
NODE_NAME_LABEL = "kubevirt.io/nodeName"
MIGRATION_TARGET_NODE_LABEL = "kubevirt.io/migrationTargetNodeName"
FINALIZER = "kubevirt.io/foregroundDeleteVirtualMachine"
