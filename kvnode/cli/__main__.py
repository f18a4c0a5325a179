"""``python -m kvnode.cli``: the same as ``kvnode``."""

from kvnode.cli import main

main()
