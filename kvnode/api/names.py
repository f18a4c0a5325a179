"""Labels, annotations and other names of the KubeVirt API.

``staging/src/kubevirt.io/api/core/v1/types.go``
"""

PCI_TOPOLOGY_VERSION_ANNOTATION = "kubevirt.io/pci-topology-version"
PCI_TOPOLOGY_VERSION_V3 = "v3"

QGS_SOCKET_PATH_ANNOTATION = "kubevirt.io/qgs-socket-path"
