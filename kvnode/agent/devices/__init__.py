"""Devices of the node, offered to pods through kubelet (its device plugin API, v1beta1)."""
