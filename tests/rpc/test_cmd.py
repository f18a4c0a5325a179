"""The command client against a real server on a unix socket."""

from __future__ import annotations

import asyncio

import pytest

from kvnode.rpc import cmd_info_pb2
from kvnode.rpc.cmd import CMD_INFO, CmdClient, bind_cmd
from kvnode.rpc.cmd_v1_pb2 import (
    DomainResponse,
    ExecResponse,
    GuestPingResponse,
    QemuVersionResponse,
    RedefineCheckpointResponse,
    Response,
    VirtualMachineOptions,
)
from kvnode.rpc.errors import RpcError, VersionError
from tests.rpc.helpers import run, serving

OK = Response(success=True)


def answering(answer):
    async def handler(request, context):
        return answer

    return handler


def with_client(socket, handlers, work):
    """Serve ``handlers``, and return what ``work(client)`` gives."""

    async def body():
        async with serving(socket, *bind_cmd(handlers)):
            client = await CmdClient.open(socket)
            try:
                return await work(client)
            finally:
                await client.close()

    return run(body())


@pytest.fixture
def socket(tmp_path):
    return tmp_path / "launcher-sock"


def test_the_handshake_agrees_on_version_one(socket):
    async def version(client):
        return client.version

    assert with_client(socket, {}, version) == 1


def test_a_launcher_of_another_version_is_refused(socket):
    async def body():
        info = cmd_info_pb2.CmdInfoResponse(supportedCmdVersions=[7])
        async with serving(socket, CMD_INFO.bind({"Info": answering(info)})):
            await CmdClient.open(socket)

    with pytest.raises(VersionError, match="the server knows 7, we 1"):
        run(body())


def test_nobody_on_the_socket(socket):
    with pytest.raises(RpcError, match=r"nothing answers on .*launcher-sock after 0\.2 s") as caught:
        run(CmdClient.open(socket, timeout=0.2))
    assert caught.value.disconnected


def test_a_sync_carries_the_vmi_and_the_options(socket):
    asked = []

    async def sync(request, context):
        asked.append(request)
        return OK

    options = VirtualMachineOptions(MemBalloonStatsPeriod=10)
    with_client(socket, {"SyncVirtualMachine": sync}, lambda c: c.sync(b'{"kind":"x"}', options))
    assert asked[0].vmi.vmiJson == b'{"kind":"x"}'
    assert asked[0].options.MemBalloonStatsPeriod == 10


def test_the_authority_is_localhost(socket):
    """Go's server refuses the socket's path there. Seen in the bytes, as no handler is told."""

    async def body():
        heard = asyncio.get_running_loop().create_future()

        async def http2(reader, writer):
            writer.write(bytes.fromhex("000000040000000000"))  # an empty SETTINGS frame
            data = b""
            while b"/kubevirt.cmd.info.CmdInfo/Info" not in data:
                data += await reader.read(4096)
            heard.set_result(data)
            writer.close()

        async with await asyncio.start_unix_server(http2, socket):
            with pytest.raises(RpcError):
                await CmdClient.open(socket)
            return await heard

    data = run(body())
    assert b"localhost" in data
    assert bytes(socket) not in data


def test_a_refusal_is_an_error_with_the_launchers_words(socket):
    refusal = Response(success=False, message="no such domain")
    with pytest.raises(RpcError, match=r"^PauseVirtualMachine: no such domain$") as caught:
        with_client(
            socket,
            {"PauseVirtualMachine": answering(refusal)},
            lambda c: c.vmi_command("PauseVirtualMachine", b"{}"),
        )
    assert caught.value.code == ""
    assert caught.value.response == refusal


@pytest.mark.parametrize(("text", "domain"), [('{"Spec":{}}', '{"Spec":{}}'), ("", None)])
def test_a_domain_and_none(socket, text, domain):
    answer = DomainResponse(response=OK, domain=text)
    assert with_client(socket, {"GetDomain": answering(answer)}, lambda c: c.domain()) == domain


def test_an_answer_that_leaves_its_verdict_out_counts_as_success(socket):
    answer = DomainResponse(domain="{}")
    assert with_client(socket, {"GetDomain": answering(answer)}, lambda c: c.domain()) == "{}"


def test_a_version_that_is_empty_is_an_error(socket):
    answer = QemuVersionResponse(response=OK)
    with pytest.raises(RpcError, match="GetQemuVersion: the launcher gave no version"):
        with_client(socket, {"GetQemuVersion": answering(answer)}, lambda c: c.qemu_version())


def test_an_invalid_checkpoint_is_told_by_the_errors_response(socket):
    answer = RedefineCheckpointResponse(response=Response(message="gone"), checkpointInvalid=True)
    with pytest.raises(RpcError, match="RedefineCheckpoint: gone") as caught:
        with_client(
            socket,
            {"RedefineCheckpoint": answering(answer)},
            lambda c: c.redefine_checkpoint(b"{}", b"{}"),
        )
    assert caught.value.response.checkpointInvalid


def test_a_commands_exit_code_is_no_error(socket):
    answer = ExecResponse(response=Response(success=False), exitCode=3, stdOut="out")
    got = with_client(socket, {"Exec": answering(answer)}, lambda c: c.execute("ns_vm", "false", [], 5))
    assert got == (3, "out")


def test_a_handler_fails_the_call_itself(socket):
    async def ping(request, context):
        raise RpcError("GuestPing", "the guest's agent is silent", "DEADLINE_EXCEEDED")

    with pytest.raises(RpcError, match="the guest's agent is silent") as caught:
        with_client(socket, {"GuestPing": ping}, lambda c: c.guest_ping("ns_vm", 1))
    assert caught.value.code == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize("text", ["\ud800 half", "\u00e4" * 100_000])
def test_a_failure_of_any_text_can_be_told(socket, text):
    async def ping(request, context):
        raise RpcError("GuestPing", text, "ABORTED")

    with pytest.raises(RpcError) as caught:
        with_client(socket, {"GuestPing": ping}, lambda c: c.guest_ping("ns_vm", 1))
    assert caught.value.code == "ABORTED"
    assert caught.value.message[:3] in ("? h", "\u00e4" * 3)


def test_a_handler_that_breaks_ends_its_own_call_alone(socket, caplog):
    async def ping(request, context):
        raise KeyError("mac")

    async def work(client):
        with pytest.raises(RpcError, match="GuestPing: KeyError: 'mac'") as caught:
            await client.guest_ping("ns_vm", 1)
        await client.ping()
        return caught.value.code

    assert with_client(socket, {"GuestPing": ping, "Ping": answering(OK)}, work) == "INTERNAL"
    assert "GuestPing failed" in caplog.text


def test_a_handler_that_gives_the_wrong_message_is_an_error(socket):
    with pytest.raises(RpcError, match="the handler gave GuestPingResponse, not Response"):
        with_client(socket, {"Ping": answering(GuestPingResponse())}, lambda c: c.ping())


def test_a_method_that_the_launcher_does_not_know(socket):
    with pytest.raises(RpcError) as caught:
        with_client(socket, {}, lambda c: c.ping())
    assert caught.value.unimplemented


def test_a_call_that_takes_too_long(socket):
    async def ping(request, context):
        await asyncio.sleep(10)

    with pytest.raises(RpcError) as caught:
        with_client(
            socket,
            {"SoftRebootVirtualMachine": ping},
            lambda c: c.vmi_command("SoftRebootVirtualMachine", b"{}", timeout=0.1),
        )
    assert caught.value.code == "DEADLINE_EXCEEDED"


def test_a_closed_connection(socket):
    async def work(client):
        await client.close()
        await client.ping()

    with pytest.raises(RpcError) as caught:
        with_client(socket, {"Ping": answering(OK)}, work)
    assert caught.value.disconnected


def test_a_launcher_that_is_gone(socket):
    async def body():
        async with serving(socket, *bind_cmd({"Ping": answering(OK)})):
            client = await CmdClient.open(socket)
            await client.ping()
        try:
            await client.ping()
        finally:
            await client.close()

    with pytest.raises(RpcError) as caught:
        run(body())
    assert caught.value.disconnected
