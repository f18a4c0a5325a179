"""``python -m tests.net.ping ADDRESS [BYTES]``: ends well when one echo of so many bytes, unfragmented, came back."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
import time

WAIT = 3.0
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2


def checksum(data: bytes) -> int:
    """The internet checksum."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def main() -> int:
    """Run."""
    address = ipaddress.ip_address(sys.argv[1])
    data = bytes(int(sys.argv[2]) if len(sys.argv) > 2 else 56)
    mark = os.getpid() & 0xFFFF
    if address.version == 4:
        asked = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        asked.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        request, reply, header = 8, 0, 20
    else:
        asked = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        request, reply, header = 128, 129, 0
    total = checksum(struct.pack("!BBHHH", request, 0, 0, mark, 1) + data)
    packet = struct.pack("!BBHHH", request, 0, total, mark, 1) + data
    with asked:
        asked.sendto(packet, (str(address), 0))
        end = time.monotonic() + WAIT
        while (left := end - time.monotonic()) > 0:
            asked.settimeout(left)
            try:
                received, peer = asked.recvfrom(1 << 16)
            except TimeoutError:
                break
            kind, _, _, found, _ = struct.unpack_from("!BBHHH", received, header)
            if (kind, found, ipaddress.ip_address(peer[0])) == (reply, mark, address):
                return 0 if len(received) - header - 8 == len(data) else 1
    return 1


if __name__ == "__main__":
    sys.exit(main())
