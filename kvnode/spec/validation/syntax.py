"""Syntax of addresses, paths, patterns and encoded data, as the Go libraries of KubeVirt read them."""

from __future__ import annotations

import ipaddress
import posixpath
import re

_MAC = re.compile(r"[0-9a-fA-F]{2}([:-])([0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}")
_MAC_DOTTED = re.compile(r"[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}")
_PCI = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")

PCI_EXAMPLE = "0000:81:00.0"


def is_mac(text: str) -> bool:
    """Whether a text is a 6-byte MAC address (`pkg/network/link/mac.go:35`)."""
    return _MAC.fullmatch(text) is not None or _MAC_DOTTED.fullmatch(text) is not None


def is_pci_address(text: str) -> bool:
    """Whether a text is a full PCI address, domain to function (`pkg/util/hardware/hw_utils.go:37`)."""
    return _PCI.fullmatch(text) is not None


def is_ip(text: str) -> bool:
    """Whether a text is an IP address of either family, without a zone."""
    return "%" not in text and _ip(text) is not None


def is_ipv4(text: str) -> bool:
    """Whether a text is an IPv4 address; one that is mapped into IPv6 counts."""
    address = None if "%" in text else _ip(text)
    return isinstance(address, ipaddress.IPv4Address) or (address is not None and bool(address.ipv4_mapped))


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def base64_length(text: str) -> int | None:
    """Number of bytes that a standard base64 text holds, None if it is not one; line ends are skipped."""
    packed = text.replace("\r", "").replace("\n", "")
    if _BASE64.fullmatch(packed) is None:
        return None
    return len(packed) // 4 * 3 - packed[-2:].count("=")


def byte_length(text: str) -> int:
    """Length of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def path_fault(path: str) -> str | None:
    """What is wrong with the path of a file in an image, or None (`pkg/storage/admitters/disks.go:375`)."""
    if path == "/":
        return "must name a file, not the root"
    if posixpath.normpath("/" + path.lstrip("/")) != path.removesuffix("/"):
        return "must be an absolute path without '.', '..' or '//' in it"
    return None


def glob_matches(pattern: str, text: str) -> bool:
    """Whether a shell pattern matches, as Go's `filepath.Match` does; a malformed one matches nothing."""
    out = []
    index = 0
    while index < len(pattern):
        letter = pattern[index]
        if letter == "[":
            end = pattern.find("]", index + 2)
            if end < 0:
                return False
            out.append(pattern[index : end + 1])
            index = end
        elif letter == "\\" and index + 1 < len(pattern):
            index += 1
            out.append(re.escape(pattern[index]))
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter)))
        index += 1
    try:
        return re.fullmatch("".join(out), text, re.DOTALL) is not None
    except re.error:
        return False
