"""What a guest is asked as a whole: power, clock, agent; and what is measured of it."""

from __future__ import annotations

import asyncio
import base64
import json

import libvirt
import pytest

from kvnode.launcher.manager import freeze, guest_agent, lifecycle
from kvnode.launcher.manager.errors import ExecExit, ManagerError, NoDomainError
from kvnode.launcher.manager.freeze import Freezer
from kvnode.launcher.manager.guest_agent import GuestAgent
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.lifecycle import Lifecycle
from kvnode.launcher.manager.memory import ram_blocks
from kvnode.launcher.manager.memory_dump import MemoryDumper
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.launcher.manager.statistics import domain_stats
from kvnode.launcher.manager.xml import parse
from kvnode.virt.connection import Connection
from kvnode.virt.domain_json.gojson import encode
from kvnode.virt.payloads.stats import DOMAIN_STATS
from tests.reports import report
from tests.virt.errors import libvirt_error

UNRESPONSIVE = libvirt.VIR_ERR_AGENT_UNRESPONSIVE


class Domain:
    """A domain that notes what is asked of it."""

    def __init__(self, state=libvirt.VIR_DOMAIN_RUNNING, reason=0, features="<acpi/>", fails=None):
        self.calls = []
        self._state = state, reason
        self._xml = f"<domain><features>{features}</features></domain>"
        self._fails = fails or {}

    def state(self):
        return list(self._state)

    def isActive(self):  # noqa: N802
        return True

    def XMLDesc(self, _flags):  # noqa: N802
        return self._xml

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            errors = self._fails.get(name)
            if errors:
                raise errors.pop(0)

        return call


class FakeHost(Host):
    """A host with that domain, or none."""

    def __init__(self, domain, **options):
        connection = Connection("", lambda *_: None, lambda: None)
        super().__init__(connection, ManagerOptions("n", "a", **options), MetadataCache())
        self.found = domain

    def lookup(self):
        return self.found


def vmi(**more):
    return Instance.read(
        json.dumps({"metadata": {"namespace": "n", "name": "a", "uid": "u"}, **more}).encode()
    )


def run(domain, body, **options):
    async def whole():
        host = FakeHost(domain, **options)
        try:
            return await body(host)
        finally:
            await host.close()

    return asyncio.run(whole())


class TestShutdown:
    """Reported: without a guest agent, a stop waited for the agent for longer than the grace period, and the guest
    was destroyed and counted as failed.
    """

    @report("B43")
    @pytest.mark.parametrize(
        ("features", "flags"),
        [
            ("<acpi/>", libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN),
            ("", libvirt.VIR_DOMAIN_SHUTDOWN_DEFAULT),
        ],
    )
    def test_the_power_button_first(self, features, flags):
        domain = Domain(features=features)
        run(domain, lambda host: Lifecycle(host).shutdown(vmi()))
        assert domain.calls == [("shutdownFlags", flags)]

    @report("B43")
    def test_it_is_pressed_again_until_the_grace_period_is_over(self, monkeypatch):
        monkeypatch.setattr(lifecycle, "PRESS_SECONDS", 0.01)
        domain = Domain()

        async def body(host):
            life = Lifecycle(host)
            await life.shutdown(vmi(spec={"terminationGracePeriodSeconds": 600}))
            while len(domain.calls) < 4:
                await asyncio.sleep(0.005)
            domain._state = libvirt.VIR_DOMAIN_SHUTOFF, 1
            await life._pressing
            return len(domain.calls)

        assert run(domain, body) >= 4

    def test_it_is_pressed_again_after_it_could_not_be(self, monkeypatch):
        """libvirt's daemon may have died meanwhile."""
        monkeypatch.setattr(lifecycle, "PRESS_SECONDS", 0.01)
        domain = Domain()

        async def body(host):
            life = Lifecycle(host)
            await life.shutdown(vmi(spec={"terminationGracePeriodSeconds": 600}))
            domain._fails = {"shutdownFlags": [libvirt_error("no daemon"), libvirt_error("no daemon")]}
            while len(domain.calls) < 4:
                await asyncio.sleep(0.005)
            domain._state = libvirt.VIR_DOMAIN_SHUTOFF, 1
            await life._pressing

        run(domain, body)
        assert len(domain.calls) > 3

    def test_the_first_time_is_noted(self):
        async def body(host):
            life = Lifecycle(host)
            await life.shutdown(vmi())
            first = host.metadata.section("GracePeriod")["DeletionTimestamp"]
            host.metadata.update("GracePeriod", DeletionTimestamp="2024-01-02T03:04:05Z")
            await life.shutdown(vmi())
            return first, host.metadata.section("GracePeriod")["DeletionTimestamp"]

        first, second = run(Domain(), body)
        assert first
        assert second == "2024-01-02T03:04:05Z"

    @pytest.mark.parametrize(
        "domain",
        [
            None,
            Domain(libvirt.VIR_DOMAIN_SHUTOFF),
            Domain(fails={"shutdownFlags": [libvirt_error(code=libvirt.VIR_ERR_OPERATION_INVALID)]}),
        ],
    )
    def test_one_that_ended_is_no_error(self, domain):
        async def body(host):
            await Lifecycle(host).shutdown(vmi())
            return host.metadata.section("GracePeriod")

        assert run(domain, body) is None


class TestPower:
    def test_pause_and_resume(self):
        domain = Domain()

        async def body(host):
            life = Lifecycle(host)
            await life.pause(vmi())
            assert host.paused == {"u"}
            domain._state = libvirt.VIR_DOMAIN_PAUSED, 1
            await life.pause(vmi())
            await life.unpause(vmi())
            assert host.paused == set()

        run(domain, body)
        assert [call[0] for call in domain.calls] == ["suspend", "resume"]

    def test_without_a_domain(self):
        for name in ("pause", "unpause"):
            with pytest.raises(NoDomainError, match="there is no domain n_a"):
                run(None, lambda host, name=name: getattr(Lifecycle(host), name)(vmi()))
        run(None, lambda host: Lifecycle(host).kill())
        run(None, lambda host: Lifecycle(host).delete())

    def test_qemu_that_does_not_end_is_killed(self):
        domain = Domain(fails={"destroyFlags": [libvirt_error(code=libvirt.VIR_ERR_OPERATION_FAILED)]})
        run(domain, lambda host: Lifecycle(host).kill())
        assert domain.calls == [
            ("destroyFlags", libvirt.VIR_DOMAIN_DESTROY_GRACEFUL),
            ("destroyFlags", libvirt.VIR_DOMAIN_DESTROY_DEFAULT),
        ]

    def test_one_that_ended_is_not(self):
        domain = Domain(libvirt.VIR_DOMAIN_SHUTOFF)
        run(domain, lambda host: Lifecycle(host).kill())
        assert domain.calls == []

    def test_delete_keeps_the_efi_variables(self):
        domain = Domain()

        async def body(host):
            life = Lifecycle(host)
            await life.delete()
            return life.deleted

        assert run(domain, body)
        ((_, flags),) = domain.calls
        assert flags & libvirt.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM

    @pytest.mark.parametrize(
        ("one", "flags"),
        [
            (vmi(status={"conditions": [{"type": "AgentConnected", "status": "True"}]}), "GUEST_AGENT"),
            (vmi(status={"conditions": [{"type": "AgentConnected", "status": "False"}]}), "ACPI_POWER_BTN"),
        ],
    )
    def test_reboots(self, one, flags):
        domain = Domain(fails={"reboot": [libvirt_error(code=UNRESPONSIVE)]})
        run(domain, lambda host: Lifecycle(host).soft_reboot(one))
        assert domain.calls == [("reboot", getattr(libvirt, f"VIR_DOMAIN_REBOOT_{flags}"))]

    def test_a_reboot_that_nobody_hears(self):
        deaf = vmi(spec={"domain": {"features": {"acpi": {"enabled": False}}}})
        with pytest.raises(ManagerError, match="neither a connected agent nor ACPI"):
            run(Domain(), lambda host: Lifecycle(host).soft_reboot(deaf))


class Agent:
    """Answers commands in turn: a value, an error, or text as it is."""

    def __init__(self, monkeypatch, *answers):
        self.asked = []
        self._answers = list(answers)
        monkeypatch.setattr(guest_agent.libvirt_qemu, "qemuAgentCommand", self._answer)

    def _answer(self, _domain, command, _timeout, _flags):
        self.asked.append(json.loads(command))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else json.dumps({"return": answer})


class TestAgent:
    def execute(self, seconds=2, arguments=("a",)):
        return run(Domain(), lambda host: GuestAgent(host).execute("n_a", "/bin/x", arguments, seconds))

    def test_output_comes_when_the_command_has_ended(self, monkeypatch):
        done = {"exited": True, "exitcode": 0, "out-data": base64.b64encode(b"hi\xff").decode()}
        agent = Agent(monkeypatch, {"pid": 5}, {"exited": False}, {"exited": False}, done)
        assert self.execute(arguments=('quote"', "b")) == "hi\ufffd"
        assert agent.asked[0] == {
            "execute": "guest-exec",
            "arguments": {"path": "/bin/x", "arg": ['quote"', "b"], "capture-output": True},
        }
        assert agent.asked[1] == {"execute": "guest-exec-status", "arguments": {"pid": 5}}

    @pytest.mark.parametrize(
        ("status", "code"), [({"exited": True, "exitcode": 3}, 3), ({"exited": True, "signal": 9}, 137)]
    )
    def test_codes(self, monkeypatch, status, code):
        Agent(monkeypatch, {"pid": 5}, status)
        with pytest.raises(ExecExit) as caught:
            self.execute()
        assert caught.value.code == code

    @pytest.mark.parametrize("seconds", [0, -5])
    def test_it_is_looked_at_once_at_least(self, monkeypatch, seconds):
        Agent(monkeypatch, {"pid": 5}, {"exited": False})
        with pytest.raises(ManagerError, match="has not ended"):
            self.execute(seconds)

    @pytest.mark.parametrize("answer", ["{", "[]", "{}", {"pid": 0}, {"pid": "5"}, 7])
    def test_answers_that_are_none(self, monkeypatch, answer):
        Agent(monkeypatch, answer)
        with pytest.raises(ManagerError, match="guest agent"):
            self.execute()

    def test_another_domain(self, monkeypatch):
        Agent(monkeypatch)
        with pytest.raises(NoDomainError):
            run(Domain(), lambda host: GuestAgent(host).execute("other", "x", [], 1))

    @pytest.mark.parametrize(
        ("domain", "well"),
        [
            (None, True),
            (Domain(libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_USER), True),
            (Domain(libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_IOERROR), False),
            (Domain(), False),
        ],
    )
    def test_pings_of_a_guest_that_need_not_answer(self, monkeypatch, domain, well):
        Agent(monkeypatch, libvirt_error(code=UNRESPONSIVE))

        async def body(host):
            await GuestAgent(host).ping("n_a")

        if well:
            run(domain, body)
        else:
            with pytest.raises(libvirt.libvirtError):
                run(domain, body)

    def test_other_errors_of_a_ping_are_told(self, monkeypatch):
        Agent(monkeypatch, libvirt_error(code=libvirt.VIR_ERR_INTERNAL_ERROR))
        with pytest.raises(libvirt.libvirtError):
            run(Domain(libvirt.VIR_DOMAIN_PAUSED, 1), lambda host: GuestAgent(host).ping("n_a"))

    def test_probes_that_are_paused_ask_nobody(self, monkeypatch):
        agent = Agent(monkeypatch)

        async def body(host):
            asking = GuestAgent(host)
            asking.probes_paused = True
            await asking.ping("n_a")

        run(Domain(), body)
        assert agent.asked == []

    def test_data_are_kept(self, monkeypatch):
        agent = Agent(monkeypatch, '{"return":1}')

        async def body(host):
            asking = GuestAgent(host)
            return [await asking.data("guest-get-time") for _ in range(3)]

        assert run(Domain(), body, vm_stats=True) == ['{"return":1}'] * 3
        assert len(agent.asked) == 1
        with pytest.raises(ManagerError, match="no command whose answers are kept"):
            run(Domain(), lambda host: GuestAgent(host).data("guest-exec"), vm_stats=True)
        with pytest.raises(ManagerError, match="are not gathered"):
            run(Domain(), lambda host: GuestAgent(host).data("guest-get-time"))


class TestFreeze:
    def test_a_guest_that_nobody_thaws_is_thawed(self):
        domain = Domain()

        async def body(host):
            freezer = Freezer(host, Frozen())
            await freezer.freeze(vmi(), 1)
            assert [call[0] for call in domain.calls] == ["fsFreeze"]
            await freezer._thawing

        run(domain, body)
        assert [call[0] for call in domain.calls] == ["fsFreeze", "fsThaw"]

    def test_a_thaw_that_fails_is_tried_again_until_the_guest_is_off(self, monkeypatch):
        monkeypatch.setattr(freeze, "PAUSE_SECONDS", 0.01)
        off = libvirt_error(code=libvirt.VIR_ERR_OPERATION_INVALID)
        domain = Domain(fails={"fsThaw": [libvirt_error("no daemon"), libvirt_error("no agent"), off]})

        async def body(host):
            freezer = Freezer(host, Frozen())
            await freezer.freeze(vmi(), 1)
            await freezer._thawing

        run(domain, body)
        assert [call[0] for call in domain.calls] == ["fsFreeze", *["fsThaw"] * 3]

    def test_a_freeze_of_which_the_end_is_not_known_is_undone(self):
        domain = Domain(fails={"fsFreeze": [libvirt_error("no daemon")]})

        async def body(host):
            freezer = Freezer(host, Frozen())
            with pytest.raises(libvirt.libvirtError, match="no daemon"):
                await freezer.freeze(vmi(), 1)
            await freezer._thawing

        run(domain, body)
        assert [call[0] for call in domain.calls] == ["fsFreeze", "fsThaw"]

    def test_what_is_so_already_is_left(self):
        domain = Domain()
        run(domain, lambda host: Freezer(host, Frozen("frozen")).freeze(vmi(), 0))
        run(domain, lambda host: Freezer(host, Frozen("thawed")).thaw())
        assert domain.calls == []

    def test_a_thaw_calls_the_safety_off(self):
        async def body(host):
            agent = Frozen()
            freezer = Freezer(host, agent)
            await freezer.freeze(vmi(), 60)
            agent.states = ["frozen"]
            await freezer.thaw()
            return freezer._thawing

        assert run(Domain(), body) is None


class Frozen:
    """An agent that tells of these states, the last of them for ever."""

    def __init__(self, *states):
        self.states = list(states) or ["thawed", "frozen"]

    async def ask(self, _command):
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


class TestDump:
    @pytest.mark.parametrize("path", ["", "relative", "/a/../b", "/"])
    def test_paths(self, path):
        async def body(host):
            MemoryDumper(host).start(path)

        with pytest.raises(ManagerError, match="dumpPath must be an absolute path"):
            run(Domain(), body)

    def test_older_dumps_go_and_the_end_is_told(self, tmp_path):
        (tmp_path / "x.memory.dump").write_bytes(b"old")
        (tmp_path / "kept").write_bytes(b"")
        domain = Domain()

        async def body(host):
            dumper = MemoryDumper(host)
            for _ in range(3):  # asked for again and again, as an agent does
                dumper.start(str(tmp_path / "new.memory.dump"))
                await asyncio.sleep(0)
            while not host.metadata.section("MemoryDump")["Completed"]:
                await asyncio.sleep(0.001)
            dumper.start(str(tmp_path / "new.memory.dump"))
            return host.metadata.section("MemoryDump")

        section = run(domain, body)
        assert (section["FileName"], section["Failed"]) == ("new.memory.dump", False)
        assert section["EndTimestamp"] >= section["StartTimestamp"]
        assert [call[0] for call in domain.calls] == ["coreDumpWithFormat"]
        assert [entry.name for entry in tmp_path.iterdir()] == ["kept"]


MEASURED = {
    "cpu.time": 7,
    "cpu.user": 3,
    "balloon.current": 1024,
    "vcpu.maximum": 2,
    "vcpu.0.state": 1,
    "vcpu.0.time": 5,
    "net.count": 1,
    "net.0.name": "tap0",
    "net.0.rx.bytes": 9,
    "block.count": 1,
    "block.0.name": "vda",
    "block.0.rd.reqs": 4,
    "block.0.backingIndex": 1,
}


class TestStatistics:
    def test_what_libvirt_gave_is_marked(self):
        made = domain_stats("n_a", "uuid", MEASURED, {"rss": 8, "actual": 6}, [(True, False)])
        assert (made["Cpu"]["TimeSet"], made["Cpu"]["Time"], made["Cpu"]["SystemSet"]) == (True, 7, False)
        memory = made["Memory"]
        assert (memory["RSS"], memory["ActualBalloon"], memory["Total"]) == (8, 6, 1024)
        assert (memory["TotalSet"], memory["UnusedSet"]) == (True, False)
        assert [(one["StateSet"], one["Time"]) for one in made["Vcpu"]] == [(True, 5), (False, 0)]
        assert (made["Net"][0]["Name"], made["Net"][0]["RxBytes"]) == ("tap0", 9)
        assert (made["Block"][0]["RdReqs"], made["Block"][0]["BackingIndex"]) == (4, 1)
        assert made["CPUMap"] == [[True, False]]
        assert '"CPUMapSet":true' in encode(DOMAIN_STATS, made)


@pytest.mark.parametrize(
    ("xml", "blocks"),
    [
        ("<domain><memory unit='MiB'>2</memory></domain>", (2 << 20,)),
        (
            (
                "<domain><memory unit='KiB'>4</memory><cpu><numa>"
                "<cell memory='1'/><cell memory='3' unit='KiB'/></numa></cpu></domain>"
            ),
            (1024, 3072),
        ),
        (
            (
                "<domain><memory>6</memory><devices><memory model='virtio-mem'><target><size>2</size></target></memory>"
                "</devices></domain>"
            ),
            (4096, 2048),
        ),
    ],
)
def test_ram(xml, blocks):
    assert ram_blocks(parse(xml)) == blocks
