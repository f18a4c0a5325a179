"""``python -m bench.ping_client SOCKET...``: pings servers, taking turns, and prints each one's best mean in seconds.

gRPC's plain client, with as little cost of its own as it can have: what is measured is the answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

import grpc

from kvnode.rpc.cmd_v1_pb2 import EmptyRequest, Response

ROUNDS, PINGS = 40, 100


def connect(socket: str) -> Callable[[], object]:
    """A function that pings the server on ``socket``."""
    channel = grpc.insecure_channel(f"unix:{socket}", options=[("grpc.default_authority", "localhost")])
    call = channel.unary_unary(
        "/kubevirt.cmd.v1.Cmd/Ping",
        request_serializer=EmptyRequest.SerializeToString,
        response_deserializer=Response.FromString,
    )
    call(EmptyRequest(), wait_for_ready=True)
    return lambda: call(EmptyRequest())


def main() -> None:
    """Measure and print."""
    pings = [connect(socket) for socket in sys.argv[1:]]
    best = [float("inf")] * len(pings)
    for _ in range(ROUNDS):
        for number, ping in enumerate(pings):
            start = perf_counter()
            for _ in range(PINGS):
                ping()
            best[number] = min(best[number], (perf_counter() - start) / PINGS)
    print(*best)


if __name__ == "__main__":
    main()
