"""Making the domain what the VMI says: define, start, resume, plug
(``pkg/virt-launcher/virtwrap/manager.go:1380``).
"""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import Any

import libvirt

from kvnode.converter import convert
from kvnode.launcher.context import ContextBuilder
from kvnode.launcher.log import logger
from kvnode.launcher.manager import block_sizes, disks, growth, hardware, image_volumes, interfaces, ports
from kvnode.launcher.manager.errors import ManagerError, NotSupportedError
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.statistics import Statistics
from kvnode.launcher.manager.steps import Steps
from kvnode.launcher.manager.xml import name_of, parse, target_of, text
from kvnode.launcher.network import PodNetwork
from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions
from kvnode.virt.adapt import adapt

_STARTING = (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP)
_DOWN = (libvirt.VIR_DOMAIN_NOSTATE, libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_CRASHED)
_SIDECARS = "hooks.kubevirt.io/hookSidecars"
_INACTIVE = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE


class Synchronizer:
    """Brings the domain to what VMIs say, one after the other."""

    def __init__(
        self, host: Host, statistics: Statistics, steps: Steps, network: PodNetwork | None = None
    ) -> None:
        """Work on the domain of ``host``; without ``network`` the guest's interfaces are libvirt's matter."""
        self._host = host
        self._statistics = statistics
        self._steps = steps
        self._network = network
        self._contexts = ContextBuilder(host.options)
        self._last: tuple[tuple[bytes, Sequence[str]], ET.Element] | None = None
        self._version: tuple[object, int] | None = None
        self.start_lost = False
        """A start was lost with its daemon: the guest is to be started although its VMI may be Running already."""

    async def sync(
        self,
        vmi: Instance,
        options: VirtualMachineOptions | None,
        plugins: Sequence[Mapping[str, Any]],
        *,
        may_define: bool = True,
    ) -> None:
        """Do it. Whatever fails raises; the next time starts over with what is there then."""
        _refuse_hooks(vmi, plugins)
        wanted = await self._host.work(self.wanted, vmi, options)
        attachments = dict(options.interfaceDomainAttachment) if options is not None else {}
        domain = await self._host.call(self._host.lookup)
        if domain is None:
            if not may_define:
                raise ManagerError("the domain was deleted; this launcher defines no other")
            domain = await self._define(vmi, wanted, attachments)
        live = await self._host.call(self._bring_up, vmi, domain)
        if live is not None:
            await self._plug(vmi, domain, wanted, live, attachments)
        self._host.metadata.update("GracePeriod", DeletionGracePeriodSeconds=vmi.grace_seconds)

    def wanted(self, vmi: Instance, options: VirtualMachineOptions | None) -> ET.Element:
        """The domain that the VMI asks for, as the installed libvirt takes it; not to be changed. Blocks.

        Raises ManagerError, ConversionError.
        """
        if self._host.options.image_volume:
            image_volumes.link_image_volumes(vmi)
        matched = block_sizes.matched(vmi)
        asked = block_sizes.without_wish(vmi) if matched else vmi.json
        converted = convert(asked, self._contexts.build(vmi, options))
        if self._last is None or self._last[0] != (converted, matched):
            self._last = (converted, matched), self._adapted(converted, matched)
        return self._last[1]

    def _adapted(self, converted: bytes, matched: Sequence[str]) -> ET.Element:
        version, xml = self._libvirt_version(), converted
        if matched:
            domain = parse(converted)
            block_sizes.fill_in(domain, matched)
            xml = text(domain).encode()
        if version < hardware.NO_CELL_SINCE:
            domain = parse(xml)
            if hardware.add_cell(domain):
                xml = text(domain).encode()
        return parse(adapt(xml, version, standalone=self._host.options.standalone).xml)

    def _libvirt_version(self) -> int:
        """The daemon's, asked once a connection."""
        raw = self._host.connection.raw
        if self._version is None or self._version[0] is not raw:
            self._version = raw, self._host.connection.versions().libvirt
        return self._version[1]

    # ---- define

    async def _define(
        self, vmi: Instance, wanted: ET.Element, attachments: Mapping[str, str]
    ) -> libvirt.virDomain:
        host = self._host
        await host.work(self._steps.before_define, vmi)
        made = copy.deepcopy(wanted)
        if self._network is not None:
            await self._network.plug(vmi.data, made, attachments)
        await host.work(growth.grow_images, vmi, made)
        xml = await host.work(self._steps.set_modes, text(made))
        domain = await host.call(self._define_domain, vmi, xml)
        host.metadata.set_uid(vmi.uid)
        host.metadata.update("GracePeriod", quietly=True, DeletionGracePeriodSeconds=vmi.grace_seconds)
        logger.info("defined the domain")
        return domain

    def _define_domain(self, vmi: Instance, domain: str) -> libvirt.virDomain:
        connection = self._host.connection.raw
        finished = False

        def define(xml: str) -> str:
            return str(connection.defineXML(xml).XMLDesc(_INACTIVE))

        try:
            ports.define_with_ports(vmi, domain, define)
            finished = True
        finally:
            if not finished:
                self._undefine()  # else the next time takes the half of it for the whole
        return self._host.domain()

    def _undefine(self) -> None:
        try:
            domain = self._host.lookup()
            if domain is not None:
                domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM)
        except libvirt.libvirtError as error:
            logger.warning("the unfinished domain stays: %s", error.get_error_message())

    # ---- start or resume

    def _bring_up(self, vmi: Instance, domain: libvirt.virDomain) -> ET.Element | None:
        """Start or resume the guest if that is its turn; its XML, or None when it does not run. Blocks."""
        state, reason = domain.state()
        if (
            state,
            reason,
        ) == _STARTING:  # of an earlier daemon: no start of this one's is under way in our turn
            raise ManagerError(
                "libvirt has not come to terms with an earlier start that was cut short; try again"
            )
        if state in _DOWN and (self.start_lost or not vmi.running) and not vmi.final:
            self._start(vmi, domain)
        elif state == libvirt.VIR_DOMAIN_PAUSED and vmi.uid not in self._host.paused:
            domain.resume()
            logger.info("resumed the guest")
        elif state in _DOWN:
            return None
        live = parse(domain.XMLDesc(0))
        self._statistics.aliases = _aliases(live)
        return live

    def _start(self, vmi: Instance, domain: libvirt.virDomain) -> None:
        self._steps.before_start(vmi, domain.XMLDesc(0))
        flags = libvirt.VIR_DOMAIN_NONE
        # An emulator thread on CPUs of its own is moved there by the agent before the guest runs.
        isolated = vmi.dedicated_cpus and bool(vmi.cpu.get("isolateEmulatorThread"))
        if vmi.starts_paused or isolated:
            flags = libvirt.VIR_DOMAIN_START_PAUSED
        domain.createWithFlags(flags)
        self.start_lost = False
        if vmi.starts_paused:
            self._host.paused.add(vmi.uid)
        logger.info("started the guest")

    # ---- plug

    async def _plug(
        self,
        vmi: Instance,
        domain: libvirt.virDomain,
        wanted: ET.Element,
        live: ET.Element,
        attachments: Mapping[str, str],
    ) -> None:
        new = interfaces.networks_to_plug(vmi, live) if vmi.running else []
        if new:
            wanted = copy.deepcopy(wanted)
            if self._network is not None:
                await self._network.plug(vmi.data, wanted, attachments, new)
        await self._host.call(self._plug_devices, vmi, domain, wanted, live, new)

    def _plug_devices(
        self,
        vmi: Instance,
        domain: libvirt.virDomain,
        wanted: ET.Element,
        live: ET.Element,
        networks: Sequence[str],
    ) -> None:
        changed = disks.sync_disks(domain, wanted, live, self._steps.set_modes)
        if vmi.running:
            interfaces.plug(domain, wanted, networks)
            changed |= bool(networks) | interfaces.sync_interfaces(domain, vmi, wanted, live)
        if changed:
            live = parse(domain.XMLDesc(0))
            self._statistics.aliases = _aliases(live)
        growth.grow_disks(vmi, domain, live, self._libvirt_version())


def _aliases(live: ET.Element) -> dict[str, str]:
    """Target device of each disk and interface to the name that the VMI gives it."""
    found = {}
    for device in (*live.iterfind("devices/interface"), *live.iterfind("devices/disk")):
        if target_of(device) and name_of(device):
            found[target_of(device)] = name_of(device)
    return found


def _refuse_hooks(vmi: Instance, plugins: Sequence[Mapping[str, Any]]) -> None:
    """What is to change the domain on its way must not be passed over in silence."""
    if vmi.annotations.get(_SIDECARS, "").strip() not in ("", "[]", "null"):
        raise NotSupportedError(f"a hook sidecar ({_SIDECARS})")
    for plugin in plugins:
        if (plugin.get("spec") or {}).get("domainHooks"):
            name = (plugin.get("metadata") or {}).get("name") or "?"
            raise NotSupportedError(f"the domain hook of plugin {name}")
