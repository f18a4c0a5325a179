"""What a VirtualMachineInstance or a VirtualMachine gets when its author leaves it out."""

from kvnode.spec.defaults.instance import DefaultingError, apply_defaults
from kvnode.spec.defaults.machine import apply_machine_defaults

__all__ = ["DefaultingError", "apply_defaults", "apply_machine_defaults"]
