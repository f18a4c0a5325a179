"""Tests of the VirtualMachineInstance controller."""
