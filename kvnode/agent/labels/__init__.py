"""Labels of the node: what its hypervisor can do (``pkg/virt-handler/node-labeller/``)."""
