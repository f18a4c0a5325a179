"""Devices of the node, offered to its kubelet (``pkg/virt-handler/device-manager``)."""
