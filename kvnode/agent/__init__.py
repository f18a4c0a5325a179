"""The node agent: decides what becomes of the VirtualMachineInstances of its node.

Everything is decided from scratch at each pass over a VMI (`execute`). What a decision touches - launchers, the
API server, mounts, the network, the clock - is handed in by the small protocols of `parts`.
"""
