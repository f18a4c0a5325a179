"""The notify client against a real server on a unix socket."""

from __future__ import annotations

import pytest

from kvnode.rpc.errors import RpcError
from kvnode.rpc.notify import ADDED, ERROR, NotifyClient, bind_notify
from tests.rpc.helpers import run, serving


class Agent:
    """Keeps what it is told; refuses what is no JSON object."""

    def __init__(self):
        self.heard = []

    async def domain_event(self, request):
        if request.domainJSON == b"{":
            raise ValueError("the domain is not JSON")
        self.heard.append((request.eventType, request.domainJSON, request.statusJSON))

    async def k8s_event(self, request):
        if request.eventJSON == b"{":
            raise ValueError("the event is not JSON")
        self.heard.append(request.eventJSON)


def told(socket, work):
    agent = Agent()

    async def body():
        async with serving(socket, *bind_notify(agent)):
            client = await NotifyClient.open(socket)
            try:
                await work(client)
            finally:
                await client.close()

    run(body())
    return agent.heard


@pytest.fixture
def socket(tmp_path):
    return tmp_path / "domain-notify-pipe.sock"


def test_events_arrive_as_sent(socket):
    async def work(client):
        assert client.version == 1
        await client.domain_event(ADDED, b'{"Spec":{}}')
        await client.domain_event(ERROR, status=b'{"status":"Failure"}')
        await client.k8s_event(b'{"reason":"IOerror"}')

    assert told(socket, work) == [
        ("ADDED", b'{"Spec":{}}', b""),
        ("ERROR", b"", b'{"status":"Failure"}'),
        b'{"reason":"IOerror"}',
    ]


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda c: c.domain_event(ADDED, b"{"), "HandleDomainEvent: the domain is not JSON"),
        (lambda c: c.k8s_event(b"{"), "HandleK8sEvent: the event is not JSON"),
    ],
)
def test_what_the_agent_refuses_is_an_error_of_no_code(socket, work, words):
    with pytest.raises(RpcError, match=words) as caught:
        told(socket, work)
    assert caught.value.code == ""


def test_no_agent(socket):
    with pytest.raises(RpcError, match="nothing answers"):
        run(NotifyClient.open(socket, timeout=0.1))
