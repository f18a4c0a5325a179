"""What the API server's audit log tells: rights that were used, beside those granted, and what was made."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tests.cluster.cluster import Cluster

Right = tuple[str, str, str]
"""API group, resource and verb."""


def granted(documents: Iterable[dict[str, Any]]) -> set[Right]:
    """What the roles among these documents grant."""
    return {
        (group, resource, verb)
        for document in documents
        if document["kind"] in ("ClusterRole", "Role")
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(cluster: Cluster, namespace: str, account: str) -> list[tuple[Right, int]]:
    """What a service account asked for, and the answers' codes; of a cluster that was brought up with ``audit``."""
    found = []
    for entry in _entries(cluster):
        if entry["user"].get("username") != f"system:serviceaccount:{namespace}:{account}":
            continue
        target = entry.get("objectRef") or {}
        resource = "/".join(filter(None, (target.get("resource"), target.get("subresource"))))
        right = (target.get("apiGroup") or "", resource, entry["verb"])
        found.append((right, entry["responseStatus"]["code"]))
    return found


def made(cluster: Cluster, namespace: str) -> Counter[str]:
    """How often something was created in a namespace, by resource; of a cluster that was brought up with ``audit``."""
    return Counter(
        str(entry["objectRef"]["resource"])
        for entry in _entries(cluster)
        if entry["verb"] == "create"
        and (entry.get("responseStatus") or {}).get("code") == 201
        and (entry.get("objectRef") or {}).get("namespace") == namespace
        and not entry["objectRef"].get("subresource")
    )


def _entries(cluster: Cluster) -> Iterator[dict[str, Any]]:
    text = (cluster.plan.root / "audit.log").read_text(errors="replace")
    # The last line may be on its way.
    for line in text.rpartition("\n")[0].splitlines():
        yield json.loads(line)
