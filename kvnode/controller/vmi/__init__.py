"""The controller of VirtualMachineInstances: their launcher pods, and their status until a node takes over."""

from kvnode.controller.vmi.controller import VirtualMachineInstanceController

__all__ = ["VirtualMachineInstanceController"]
