"""Fuzzing of the native core: ``python -m tools.fuzz``."""
