"""Syntax of Kubernetes names and labels (`k8s.io/apimachinery`, `pkg/util/validation/validation.go`).

Each function returns None for a good text, and else what would be right.
"""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PORT_NAME = re.compile(r"[-a-z0-9]+")


def dns_label_fault(text: str) -> str | None:
    """RFC 1123 label: what host names, and names that become container names, must be."""
    if len(text.encode("utf-8", "surrogatepass")) > 63:
        return "must have at most 63 characters"
    if _LABEL.fullmatch(text) is None:
        return "must be lower-case letters, digits and '-', and start and end with a letter or digit"
    return None


def dns_subdomain_fault(text: str) -> str | None:
    """RFC 1123 subdomain: labels joined by dots."""
    if len(text.encode("utf-8", "surrogatepass")) > 253:
        return "must have at most 253 characters"
    if _SUBDOMAIN.fullmatch(text) is None:
        return "must be lower-case letters, digits, '-' and '.', and start and end with a letter or digit"
    return None


def qualified_name_fault(text: str) -> str | None:
    """A label's or annotation's key: a name of up to 63 characters, after an optional DNS prefix and '/'."""
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or dns_subdomain_fault(prefix)):
        return "must have a DNS subdomain before its '/'"
    if len(name) > 63 or _QUALIFIED.fullmatch(name) is None:
        return "must be 1 to 63 letters, digits, '-', '_' and '.', and start and end with a letter or digit"
    return None


def label_value_fault(text: str) -> str | None:
    """A label's value: like the name in its key, or empty."""
    if text and (len(text) > 63 or _QUALIFIED.fullmatch(text) is None):
        return "must be up to 63 letters, digits, '-', '_' and '.', and start and end with a letter or digit"
    return None


def port_name_fault(text: str) -> str | None:
    """IANA service name."""
    good = (
        len(text) <= 15
        and _PORT_NAME.fullmatch(text) is not None
        and any("a" <= letter <= "z" for letter in text)
        and "--" not in text
        and not text.startswith("-")
        and not text.endswith("-")
    )
    if good:
        return None
    return "must be 1 to 15 lower-case letters, digits and single '-' inside, with at least one letter"
