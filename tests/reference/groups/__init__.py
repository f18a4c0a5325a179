"""One module a group, each with ``run(case) -> Outcome``."""
