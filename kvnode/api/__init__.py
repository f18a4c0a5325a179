"""The vocabulary of the ``kubevirt.io/v1`` API: names, phases, paths and quantities.

Nothing here imports another part of kvnode.
"""
