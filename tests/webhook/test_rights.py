"""deploy/webhook on a real API server: all that it grants is used, and nothing else is asked for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest

from kvnode.kube.resources import SECRETS
from kvnode.webhook.store import SECRET
from tests.cluster.audit import asked, granted
from tests.cluster.cluster import Cluster, up
from tests.cluster.fixtures import make_namespace
from tests.kube.loops import now, real_time
from tests.webhook.test_cluster import answering, documents, installed

pytestmark = pytest.mark.cluster

HOME = "kvnode"


@pytest.fixture
def audited() -> Iterator[Cluster]:
    cluster = up(lambda line: print(line, file=sys.stderr), audit=True)
    try:
        make_namespace(cluster, HOME)
        yield cluster
    finally:
        cluster.down()


@real_time
async def test_every_right_is_used_and_no_other_is_asked_for(audited: Cluster) -> None:
    roles = documents("rbac.yaml", HOME)
    async with installed(audited, HOME) as it:
        secret = await it.user.get(SECRETS, SECRET, HOME)
        await it.user.replace(SECRETS, {**secret, "data": {}})  # it is written anew
        deadline = now() + 90
        while unused := granted(roles) - {right for right, _ in asked(audited, HOME, "kvnode-webhook")}:
            assert now() < deadline, unused
            await asyncio.sleep(0.1)
        await answering(it.user, HOME)
    refused = {right for right, code in asked(audited, HOME, "kvnode-webhook") if code == 403}
    assert refused == set()
    others = {right for right, _ in asked(audited, HOME, "kvnode-webhook")} - granted(roles)
    assert others <= {("", "", "get")}  # /version, which everybody may ask for
