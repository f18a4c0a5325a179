"""What a guest's agent is asked: commands, and file systems frozen and thawed."""

from __future__ import annotations

import base64
import json

import libvirt
import pytest

from kvnode.launcher.manager import freeze, guest_agent
from kvnode.launcher.manager.errors import ExecExit, ManagerError, NoDomainError
from kvnode.launcher.manager.freeze import Freezer
from kvnode.launcher.manager.guest_agent import GuestAgent
from tests.launcher.manager.domains import Domain, run, vmi
from tests.virt.errors import libvirt_error

UNRESPONSIVE = libvirt.VIR_ERR_AGENT_UNRESPONSIVE


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
