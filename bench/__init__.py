"""Benchmarks of the converter: `make bench` runs them and writes docs/performance.md."""
