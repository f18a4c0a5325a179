"""What a VirtualMachineInstance gets when its author leaves it out."""

from kvnode.spec.defaults.instance import DefaultingError, apply_defaults

__all__ = ["DefaultingError", "apply_defaults"]
