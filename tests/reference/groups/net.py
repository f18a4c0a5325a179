"""``net``: the set-up of a pod's network, the DHCP servers' options and packets."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address
from typing import Any

from kvnode.net.dhcp import message6, options, packet, resolvconf
from kvnode.net.dhcp.config import DhcpConfig
from kvnode.net.dhcp.errors import DhcpError
from kvnode.net.dhcp.options import Route
from kvnode.net.dhcp.service import answer4
from tests.reference.common import Case, Outcome
from tests.reference.groups import _podnet

KINDS = {"Discover": 1, "Request": 3, "Decline": 4, "Release": 7, "Inform": 8}
TRANSACTION = bytes((1, 2, 3, 4))
OTHER_MAC = bytes((2, 0, 0, 0, 0, 0x99))


def run(case: Case) -> Outcome:
    """Run one row."""
    row = case.data
    if row["kind"] == "dhcp4-options":
        return _options4(row)
    if row["kind"] == "dhcp6-reply":
        return _reply6(row)
    return _podnet.run(row) or Outcome.missing(f"rows of kind {row['kind']}")


def _options4(row: dict[str, Any]) -> Outcome:
    keys = (
        "nameservers4",
        "nameservers6",
        "search_domains",
        "options_hex_by_code",
        "replies",
        "returns_error",
    )
    want = {key: row[key] for key in keys if key in row}
    if row["returns_error"] and not row.get("options_hex_by_code"):
        want.pop("options_hex_by_code", None)
    found = resolvconf.parse(row["resolv_conf"])
    got: dict[str, Any] = {
        "nameservers4": [str(address) for address in found.ipv4],
        "nameservers6": [str(address) for address in found.ipv6],
        "search_domains": list(resolvconf.with_subdomain(found.search, row["subdomain"])),
        "returns_error": False,
    }
    client = IPv4Interface(row["client_cidr"])
    gateway = IPv4Address(row["gateway"]) if row["gateway"] else None
    routes = [_route(route) for route in row["routes"] or []]
    try:
        built = options.build(
            mask=client.netmask,
            router=gateway,
            nameservers=found.ipv4,
            routes=routes,
            search=got["search_domains"],
            mtu=row["mtu"],
            hostname=row["hostname"],
            custom=row["custom_options"],
        )
    except DhcpError:
        got["returns_error"] = True
        return Outcome.of(want, {key: got[key] for key in want if key in got})
    got["options_hex_by_code"] = {str(code): value.hex() for code, value in built.items()}
    if "replies" in row:
        got["replies"] = _replies(row, found, client, gateway, routes)
    return Outcome.of(want, got)


def _route(route: dict[str, str]) -> Route:
    network = IPv4Network(route["dst"]) if route["dst"] else None
    return Route(network, IPv4Address(route["gw"]) if route["gw"] else None)


def _replies(
    row: dict[str, Any],
    found: resolvconf.ResolvConf,
    client: IPv4Interface,
    gateway: IPv4Address | None,
    routes: list[Route],
) -> dict[str, Any]:
    mac = bytes.fromhex(row["client_mac"].replace(":", ""))

    def reply(kind: int, hardware: bytes, wanted: bytes) -> bytes | None:
        config = DhcpConfig(
            name="eth0",
            ip=client,
            mac=wanted,
            server_ip=IPv4Address(row["server_ip"]),
            gateway=gateway,
            routes=tuple(routes),
            mtu=row["mtu"],
            subdomain=row["subdomain"],
        )
        answered = answer4(config, found, row["custom_options"], row["hostname"])(_request(kind, hardware))
        return answered[0] if answered is not None else None

    got: dict[str, Any] = {}
    for name in row["replies"]:
        if name == "Discover from another MAC":
            got[name] = reply(packet.DISCOVER, OTHER_MAC, mac) is not None
        elif name == "Discover from any MAC when none is configured":
            got[name] = reply(packet.DISCOVER, OTHER_MAC, b"") is not None
        else:
            answered = reply(KINDS[name], mac, mac)
            got[name] = None if answered is None else _described(answered)
    return got


def _request(kind: int, hardware: bytes) -> bytes:
    """A request as a client sends it, asking for a broadcast."""
    head = bytes((1, 1, len(hardware), 0)) + TRANSACTION + bytes((0, 0, 0x80, 0)) + bytes(16)
    data = head + hardware.ljust(16, b"\0") + bytes(192) + bytes((99, 130, 83, 99, 53, 1, kind, 255))
    return data.ljust(272, b"\0")


def _described(data: bytes) -> dict[str, Any]:
    fields = {"ciaddr": 12, "yiaddr": 16, "siaddr": 20, "giaddr": 24}
    found: dict[str, str] = {}
    at = 240
    while data[at] != 255:
        end = at + 2 + data[at + 1]
        found[str(data[at])] = data[at + 2 : end].hex()
        at = end
    return {
        "op": data[0],
        "xid": data[4:8].hex(),
        "broadcast": data[10] >= 0x80,
        "size": len(data),
        "options_hex_by_code": found,
        **{name: str(IPv4Address(data[start : start + 4])) for name, start in fields.items()},
    }


def _reply6(row: dict[str, Any]) -> Outcome:
    keys = ("reply_hex", "reply_type", "returns_error")
    want = {key: row[key] for key in keys if row.get(key)}
    reply = message6.answer(
        bytes.fromhex(row["request_hex"]),
        client=IPv6Address(row["client_ip"]),
        server_mac=bytes.fromhex(row["server_mac"].replace(":", "")),
        nameservers=[IPv6Address(address) for address in row["nameservers6"] or []],
    )
    if reply is None:
        return Outcome.of(want, {"returns_error": True})
    return Outcome.of(want, {"reply_hex": reply.hex(), "reply_type": {2: "ADVERTISE", 7: "REPLY"}[reply[0]]})
