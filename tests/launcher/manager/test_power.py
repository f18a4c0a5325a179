"""Shutting a guest down, resetting and deleting it, and its clock."""

from __future__ import annotations

import asyncio

import libvirt
import pytest

from kvnode.launcher.manager import lifecycle
from kvnode.launcher.manager.errors import ManagerError, NoDomainError
from kvnode.launcher.manager.lifecycle import Lifecycle
from tests.launcher.manager.domains import Domain, run, vmi
from tests.reports import report
from tests.virt.errors import libvirt_error

UNRESPONSIVE = libvirt.VIR_ERR_AGENT_UNRESPONSIVE


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
