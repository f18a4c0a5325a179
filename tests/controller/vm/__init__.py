"""Tests of the VirtualMachine controller."""
