"""Conditions of a VMI that the node agent sets, each rule in a module of its own."""
