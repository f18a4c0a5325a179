"""Install the project's custom resource definitions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.api import Api
from tests.cluster.errors import ClusterError

DIRECTORY = Path(__file__).parents[2] / "deploy" / "crds"
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def documents() -> list[dict[str, Any]]:
    """All definitions in deploy/crds."""
    return [
        document
        for file in sorted(DIRECTORY.glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
        if document
    ]


def apply_crds(api: Api) -> None:
    """Install them and wait until the API server serves them.

    Raises:
        ClusterError: one was refused or is not served after 20 s.
    """
    names = []
    for document in documents():
        name = document["metadata"]["name"]
        api.apply(document, f"{PATH}/{name}")
        names.append(name)
    deadline = time.monotonic() + 20
    for name in names:
        while not _served(api, name):
            if time.monotonic() > deadline:
                raise ClusterError(f"the API server does not serve {name}")
            time.sleep(0.05)


def _served(api: Api, name: str) -> bool:
    definition = api.request("GET", f"{PATH}/{name}")
    # null, not an empty list, until the API server has looked at the definition
    listed = definition.get("status", {}).get("conditions") or []
    conditions = {condition["type"]: condition["status"] for condition in listed}
    if conditions.get("Established") != "True":
        return False
    spec = definition["spec"]
    version = spec["versions"][0]["name"]
    try:
        api.request("GET", f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?limit=1")
    except ClusterError:
        return False
    return True
