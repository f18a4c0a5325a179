"""The controller of VirtualMachines: from a VM to its VMI, and back to the VM's status."""

from kvnode.controller.vm.controller import VirtualMachineController

__all__ = ["VirtualMachineController"]
