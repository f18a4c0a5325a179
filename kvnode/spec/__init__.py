"""Pure logic on a VirtualMachineInstance: defaults, validation and what it costs in memory."""
