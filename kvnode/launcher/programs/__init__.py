"""The programs that a launcher pod calls by name: each module's ``main`` is an entry point of the package."""
