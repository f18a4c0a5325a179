"""The command server over a real socket, with a manager that is none."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from json import dumps

import pytest

from kvnode.launcher.manager.errors import ManagerError, NotSupportedError
from kvnode.launcher.manager.unsupported import Unsupported
from kvnode.launcher.server.commands import Commands
from kvnode.launcher.server.serve import serve
from kvnode.rpc.client import Channel
from kvnode.rpc.cmd import CMD, CmdClient
from kvnode.rpc.cmd_v1_pb2 import EmptyRequest, Response, VirtualMachineOptions, VMIRequest, VMStatsRequest
from kvnode.rpc.errors import RpcError

VMI = b'{"metadata":{"name":"a","namespace":"n","uid":"1"},"spec":{"domain":{"devices":{}}}}'


class Manager(Unsupported):
    """Does nothing, or what a test says."""

    def __init__(self, **does):
        self.calls = []
        self._does = does

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)

        async def call(*arguments):
            self.calls.append(name)
            done = self._does.get(name)
            return await done(*arguments) if done is not None else None

        return call


def run(tmp_path, body, manager=None, **options):
    """Run ``await body(client)`` against a server."""

    async def whole():
        server = await serve(tmp_path / "s", Commands(manager or Manager(), **options))
        client = await CmdClient.open(tmp_path / "s")
        try:
            return await body(client)
        finally:
            await client.close()
            await server.stop()

    return asyncio.run(whole())


async def refusal(call):
    with pytest.raises(RpcError) as caught:
        await call
    return caught.value


def test_every_method_has_a_handler():
    assert set(Commands(Manager()).handlers()) == set(CMD.methods)


def test_only_root_and_the_launchers_user_get_in(tmp_path):
    async def body(_client):
        mode = (tmp_path / "s").stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o660

    run(tmp_path, body)


class TestRefusals:
    @pytest.mark.parametrize(
        "json",
        [
            b"",
            b"{",
            b"\xff\xfe\x00",
            b"[]",
            b'"x"',
            b'{"spec":{"volumes":{}}}',
            b"[" * 100_000,
            b'{"metadata":5}',
        ],
    )
    def test_what_is_no_vmi(self, tmp_path, json):
        manager = Manager()

        async def body(client):
            for rpc in ("SyncVirtualMachine", "KillVirtualMachine", "GetScreenshot"):
                call = client.screenshot(json) if rpc == "GetScreenshot" else client.vmi_command(rpc, json)
                error = await refusal(call)
                assert (error.code, error.message[:27]) == ("", "the request carries no vali")
                assert len(error.message) < 300

        run(tmp_path, body, manager)
        assert manager.calls == []

    @pytest.mark.parametrize("name", ["a/b", "..", "a\0", "x" * 231, "\u00e4" * 120])
    def test_a_name_that_no_file_can_have(self, tmp_path, name):
        """Names of volumes become names of files in the pod."""
        manager = Manager()
        vmi = dumps({"metadata": {}, "spec": {"volumes": [{"name": name, "emptyDisk": {}}]}}).encode()

        async def body(client):
            error = await refusal(client.sync(vmi, VirtualMachineOptions()))
            assert error.message.startswith("the request carries no valid VMI: spec.volumes[0].name: ")
            assert error.message.endswith("is no name of a file")
            assert len(error.message) < 200

        run(tmp_path, body, manager)
        assert manager.calls == []

    def test_half_a_character_is_replaced(self, tmp_path):
        """As Go's reader does; no file's name and no answer could carry it."""
        seen = []

        async def sync(vmi, _options, _plugins):
            seen.extend(volume["name"] for volume in vmi.spec["volumes"])

        manager = Manager(sync=sync)

        async def body(client):
            vmi = b'{"spec":{"volumes":[{"name":"a\\uD800b"},{"name":"\\ud83d\\ude00"}]}}'
            await client.sync(vmi, VirtualMachineOptions())

        run(tmp_path, body, manager)
        assert seen == ["a\ufffdb", "\U0001f600"]

    @pytest.mark.parametrize("text", ["\ud800 half", "x\n" * 100_000])
    def test_an_error_of_any_text_is_one_line_of_some_length(self, tmp_path, text):
        async def sync(_vmi, _options, _plugins):
            raise ManagerError(text)

        manager = Manager(sync=sync)

        async def body(client):
            error = await refusal(client.sync(VMI, VirtualMachineOptions()))
            assert error.code == ""
            assert "\n" not in error.message
            assert 0 < len(error.message) <= 1001

        run(tmp_path, body, manager)

    def test_bytes_that_are_no_message(self, tmp_path):
        async def body(client):
            import grpc.aio  # noqa: PLC0415

            async with grpc.aio.insecure_channel(
                f"unix:{tmp_path}/s", options=[("grpc.default_authority", "localhost")]
            ) as channel:
                call = channel.unary_unary("/kubevirt.cmd.v1.Cmd/SyncVirtualMachine")
                with pytest.raises(grpc.aio.AioRpcError):
                    await call(b"\xff\xff\xff\xff")
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await channel.unary_unary("/kubevirt.cmd.v1.Cmd/Nonsense")(b"")
                assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
            await client.ping()

        run(tmp_path, body)

    def test_a_message_without_its_vmi(self, tmp_path):
        async def body(client):
            answer = await client.channel.call(CMD, "PauseVirtualMachine", VMIRequest(), Response, 5)
            assert not answer.success
            assert "no VMI" in answer.message

        run(tmp_path, body)

    def test_plugins_that_cannot_be_read(self, tmp_path):
        async def body(client):
            error = await refusal(client.sync(VMI, VirtualMachineOptions(pluginsJson=b"{")))
            assert error.message.startswith("the plugins in the options cannot be read")

        run(tmp_path, body)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (b"", "carries no backup options"),
            (b"null", "cmd must be Start, Export or Abort"),
            (b'{"cmd":"Start","mode":"x"}', "mode must be Push or Pull, is 'x'"),
            (b'{"cmd":"Start","mode":"Pull"}', "targetPath is missing"),
            (b'{"cmd":"Export","mode":"Push"}', "only a backup of mode Pull"),
            (
                b'{"cmd":"Export","mode":"Pull","backupName":"b","backupKey":"k"}',
                "an export needs exportServerAddr, ",
            ),
            (b'{"cmd":"Abort"}', "backup is not supported"),
        ],
    )
    def test_backups(self, tmp_path, options, words):
        tracked = VMI[:-1] + b',"status":{"changedBlockTracking":{"state":"Enabled"}}}'

        async def body(client):
            assert words in (await refusal(client.backup(tracked, options))).message
            assert "is not enabled" in (await refusal(client.backup(VMI, options))).message

        run(tmp_path, body)


class TestAnswers:
    def test_the_managers_refusal_comes_through(self, tmp_path):
        async def refuses(*_arguments):
            raise ManagerError("not now")

        async def body(client):
            assert (await refusal(client.vmi_command("PauseVirtualMachine", VMI))).message == "not now"

        run(tmp_path, body, Manager(pause=refuses))

    def test_what_the_machine_lacks_is_told_without_the_way_there(self, tmp_path, caplog):
        async def sync(*_arguments):
            raise OSError(errno.ENOSPC, "No space left on device", "/a")

        async def body(client):
            error = await refusal(client.sync(VMI, VirtualMachineOptions()))
            assert "No space left on device: '/a'" in error.message

        run(tmp_path, body, Manager(sync=sync))
        assert "No space left" in caplog.text
        assert "Traceback" not in caplog.text

    def test_a_bug_is_an_answer_and_not_the_end(self, tmp_path, caplog):
        async def fails(*_arguments):
            return {}["nothing"]

        async def body(client):
            error = await refusal(client.vmi_command("PauseVirtualMachine", VMI))
            assert error.message == "PauseVirtualMachine: KeyError: 'nothing'"
            await client.ping()

        run(tmp_path, body, Manager(pause=fails))
        assert "KeyError" in caplog.text

    def test_a_command_that_fails_fails_the_call(self, tmp_path):
        async def fails(*_arguments):
            raise ManagerError("no agent")

        told = []

        async def note():
            told.append(1)

        async def body(client):
            for call in (client.execute("d", "ls", [], 1), client.guest_ping("d", 1)):
                error = await refusal(call)
                assert (error.code, error.message) == ("UNKNOWN", "no agent")

        run(tmp_path, body, Manager(execute=fails, guest_ping=fails), on_ping_failed=note)
        assert told == [1]

    def test_what_is_not_done_here_says_so(self, tmp_path):
        async def body(client):
            options = b"{}"
            for call in (
                client.migrate(VMI, options),
                client.launch_measurement(VMI),
                client.sev_info(),
                client.vmi_command("SyncMigrationTarget", VMI),
                client.vmi_command("CancelVirtualMachineMigration", VMI),
                client.vmi_command("FinalizeVirtualMachineMigration", VMI),
                client.inject_launch_secret(VMI, options),
            ):
                assert "is not supported by this launcher" in (await refusal(call)).message

        run(tmp_path, body)
        assert str(NotSupportedError("x")) == "x is not supported by this launcher"

    def test_statistics_that_are_switched_off(self, tmp_path):
        async def body(client):
            assert (await refusal(client.vm_stats(VMStatsRequest()))).code == "UNKNOWN"

        run(tmp_path, body)

    def test_parts_of_the_statistics_that_fail_do_not_keep_others_back(self, tmp_path):
        async def data(command):
            if command == "guest-get-time":
                raise ManagerError("no clock")
            return f"<{command}>"

        async def version():
            return "8.0"

        async def body(client):
            request = VMStatsRequest(guestGetTime={}, guestGetUsers={})
            answer = (await refusal(client.vm_stats(request))).response
            assert answer.response.message == "agent data guest-get-time: no clock"
            assert (answer.guestGetUsers.message, answer.guestAgentVersion.message) == (
                "<guest-get-users>",
                "8.0",
            )
            assert not answer.HasField("guestGetLoad")

        run(tmp_path, body, Manager(agent_data=data, guest_agent_version=version), vm_stats=True)

    @pytest.mark.parametrize(("target", "early"), [("me", True), ("other", False), ("", False)])
    def test_a_target_that_is_given_up(self, target, early):
        commands = Commands(Manager(), pod_name="me" if target else "")
        state = f'{{"status":{{"migrationState":{{"targetPod":"{target}"}}}}}}'.encode()
        request = VMIRequest(vmi={"vmiJson": state})
        assert asyncio.run(commands.handlers()["SignalTargetPodCleanup"](request, None)).success
        assert commands.exit_early is early


class TestLoad:
    def test_a_thousand_pings_at_once_leave_nothing(self, tmp_path):
        async def body(client):
            await asyncio.gather(*(client.ping() for _ in range(100)))
            before = open_files()
            for _ in range(10):
                await asyncio.gather(*(client.ping() for _ in range(100)))
            assert len(asyncio.all_tasks()) < 20
            assert open_files() <= before

        run(tmp_path, body)

    def test_connections_that_come_and_go_leave_nothing(self, tmp_path):
        async def body(_client):
            async def visit():
                async with Channel(tmp_path / "s") as channel:
                    await channel.call(CMD, "Ping", EmptyRequest(), Response, 5)

            await visit()
            before = open_files()
            for _ in range(30):
                await visit()
            assert open_files() <= before + 3

        run(tmp_path, body)


def open_files():
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_a_measurement_is_json_in_bytes(tmp_path):
    async def told(*_arguments):
        return {"measurement": "m"}

    async def body(client):
        assert await client.launch_measurement(VMI) == b'{"measurement":"m"}'

    manager = Manager()
    manager.launch_measurement = told
    run(tmp_path, body, manager)
