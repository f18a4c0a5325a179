"""grpcio, set up as a process that starts other programs needs it; the package's modules take it from here.

Fork handlers stay off: they let a process fork after gRPC has begun, at the price of stopping its threads
each time. Programs are started by fork and exec at once, which needs none of that.
"""

from __future__ import annotations

import os

# Read when the library is loaded, so set before the import.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

import grpc
import grpc.aio

__all__ = ["grpc"]
