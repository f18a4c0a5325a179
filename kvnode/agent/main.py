"""The node agent: watches, launchers, queue and workers around the decisions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from kvnode.agent import cluster
from kvnode.agent.absent import NoDownwardMetrics, NoHooks, NoHotplug, NoProxy
from kvnode.agent.beats import Heart, Labels
from kvnode.agent.capabilities import Node, read_node
from kvnode.agent.cleanup import clean_up_moved
from kvnode.agent.containerdisks import ContainerDisks
from kvnode.agent.devices.offer import Host
from kvnode.agent.devices.plugins import Plugins
from kvnode.agent.domains import DomainStore
from kvnode.agent.ends import Ends
from kvnode.agent.execute import execute
from kvnode.agent.ghost import Ghost
from kvnode.agent.ghosts import GhostRecords
from kvnode.agent.launchers import NodeLaunchers, answers
from kvnode.agent.observe.headroom import Headroom
from kvnode.agent.observe.health import Health
from kvnode.agent.observe.memorywatch import MemoryWatch
from kvnode.agent.observe.metrics import Source
from kvnode.agent.observe.samples import Looker
from kvnode.agent.observe.server import State, Web
from kvnode.agent.options import virtual_machine_options
from kvnode.agent.parts import Parts
from kvnode.agent.peers import Peer
from kvnode.agent.pipes import Listener, Pipe
from kvnode.agent.podnetwork import PodNetwork
from kvnode.agent.retry import BackoffLimiter, IoErrorRetry
from kvnode.agent.rounds import Rounds
from kvnode.agent.runtime import NodeRuntime
from kvnode.agent.settings import Settings, host_architecture
from kvnode.agent.sockets import Sockets
from kvnode.agent.targets import Targets
from kvnode.agent.vmi import Vmi, is_final, key_of, metadata, uid_of
from kvnode.agent.watchdog import LauncherStates
from kvnode.api.errors import FieldError
from kvnode.kube.client import Client
from kvnode.kube.events import EventRecorder
from kvnode.kube.expectations import Expectations
from kvnode.kube.informer import Change, Informer
from kvnode.kube.objects import utc_now
from kvnode.kube.queue import WorkQueue, work
from kvnode.net.podnetwork import PodNetworks
from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions
from kvnode.spec.config import ClusterConfig
from kvnode.spec.overhead import memory_overhead_terms

logger = logging.getLogger(__name__)

COMPONENT, LABELLER = "virt-handler", "node-labeller"
GHOSTS = "ghost-records"
ENDS = "ended-domains"
_SYNC_WARNING = 10.0
HANGING = 2.0
"""Seconds after which a pass is taken to wait for a launcher that hangs, and others are worked on in its stead: a call
may take twenty, and a dozen such launchers must not be all that the agent looks at."""
_LONGEST_WAIT = 60.0
"""Seconds between two tries of a pass that keeps failing: what is mended must not be waited for much longer."""


class WallClock:
    """The time of day."""

    def now(self) -> datetime:
        """Now, with its zone."""
        return utc_now()


class Agent:
    """One node's agent. To be made inside the event loop."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        *,
        root_of: Callable[[Peer], Path] = lambda peer: peer.root,
    ) -> None:
        """Read the records; nothing is asked yet.

        Raises:
            OSError: the folder of records cannot be used.
        """
        self.settings = settings
        self.client = client
        clock = asyncio.get_running_loop().time
        self.queue = WorkQueue("virt-handler-vm", cap=_LONGEST_WAIT)
        self.ghosts = GhostRecords(settings.private / GHOSTS)
        self.domains = DomainStore(self.queue)
        self.events = EventRecorder(client, COMPONENT, settings.node)
        self.node_events = EventRecorder(client, LABELLER, settings.node)
        self.vmis = cluster.instances(client, settings.node)
        self.arriving = cluster.arriving_instances(client, settings.node)
        self.pods = cluster.launcher_pods(client, settings.node)
        self.kubevirts = cluster.configurations(client)
        self.sockets = Sockets(settings.pods, settings.node, cluster.LauncherPods(self.pods))
        recorder = cluster.VmiRecorder(self.events)
        self.arriving.add_handler(Targets(settings.node, recorder).changed)
        self.launchers = NodeLaunchers(
            self.sockets,
            LauncherStates(self.sockets, utc_now, self._has_qemu),
            self.ghosts,
            options=self._options,
            pipe_for=lambda ghost: Pipe(Listener(ghost, self.domains, self.vmis.store, recorder)),
            root_of=root_of,
        )
        self.rounds = Rounds(self.launchers, self.ghosts, self.domains, utc_now, clock)
        self.node: Node = read_node(settings.capabilities, host_architecture())
        self.parts = self._parts(recorder, clock)
        self._raw_config: dict[str, Any] = {}
        host = Host(settings.devices, settings.sysfs, count=settings.max_devices)
        self.plugins = Plugins(settings.device_plugins, host)
        self.heart = Heart(client, settings.node, self.config, self.is_ready)
        self.labels = Labels(
            client,
            settings.node,
            self.node,
            config=self.config,
            raw=lambda: self._raw_config,
            events=self.node_events,
            devices=settings.devices,
        )
        self.memory, self.web = self._observers(recorder, clock)
        self.connected = False
        """Whether the agent works: its watches have begun, and all launchers were asked."""

    def _observers(
        self, recorder: cluster.VmiRecorder, clock: Callable[[], float]
    ) -> tuple[MemoryWatch, Web]:
        headroom = Headroom(recorder, self.config, clock)
        memory = MemoryWatch(
            lambda: self.launchers,
            self.vmis.store,
            self.domains,
            terms=lambda vmi: memory_overhead_terms(vmi, host_architecture(), config=self.config()),
            told=headroom.seen,
            clock=clock,
        )
        looker = Looker(lambda: self.launchers, self.vmis.store, self.domains, memory.last, clock)
        health = Health(
            running=self.queue.running,
            since_round=lambda: self.rounds.since,
            connected=lambda: self.connected,
            plugins=lambda: self.plugins.initialised,
            watches=lambda: cluster.troubles(*self._watches()),
        )
        source = Source(self.settings.node, self.is_ready, self.queue, self.node.deprecated_machines)
        return memory, Web(looker, State(health, source, lambda: tuple(recorder.last)))

    def _parts(self, recorder: cluster.VmiRecorder, clock: Callable[[], float]) -> Parts:
        expectations, clock_of_day = Expectations(), WallClock()
        return Parts(
            node=self.settings.node,
            architecture=host_architecture(),
            host_cpu_model=self.node.host_model,
            config=ClusterConfig(),
            vmis=self.vmis.store,
            domains=self.domains,
            ghosts=self.ghosts,
            expectations=expectations,
            launchers=self.launchers,
            api=cluster.ApiServer(self.client, expectations),
            recorder=recorder,
            queue=self.queue,
            disks=ContainerDisks(self.settings.pods, self.launchers.client, self.config, clock_of_day),
            hotplug=NoHotplug(),
            network=PodNetwork(PodNetworks(self.settings.private), self.launchers.client, self.config),
            runtime=NodeRuntime(
                self.launchers.client,
                self.config,
                host_architecture(),
                recorder,
                devices=self.settings.devices,
            ),
            proxy=NoProxy(),
            metrics=NoDownwardMetrics(),
            hooks=NoHooks(),
            io_retry=IoErrorRetry(clock),
            sriov_limiter=BackoffLimiter(clock),
            clock=clock_of_day,
            ends=Ends(self.settings.private / ENDS),
        )

    def config(self) -> ClusterConfig:
        """The cluster's settings as they are now."""
        return self.parts.config

    def is_ready(self) -> bool:
        """Whether VMs may be scheduled to the node."""
        return self.connected and self.plugins.initialised

    async def run(self, ready: asyncio.Event | None = None) -> None:
        """Look after the node's VMIs until cancelled; ``ready`` is set when all launchers have been asked.

        Raises:
            ExceptionGroup: a part of it failed.
        """
        self.domains.expect(self.ghosts)
        self.kubevirts.add_handler(self._on_configuration)
        self.vmis.add_handler(self._on_vmi)
        # What failed for want of the API server need not wait its time.
        self.vmis.reflector.recovered = self.queue.retry_now
        watches = self._watches()
        try:
            async with asyncio.TaskGroup() as group:
                for recorder in (self.events, self.node_events):
                    group.create_task(recorder.run())
                for informer in watches:
                    group.create_task(informer.run())
                group.create_task(self.web.run(self.settings.address, self.settings.port))
                await cluster.until_synced(_SYNC_WARNING, *watches)
                self.parts.ends.retain({uid_of(vmi) for vmi in self.vmis.store.objects()})
                unrecorded = self._unrecorded()
                self.domains.expect(unrecorded)
                group.create_task(work(self.queue, self.settings.workers, self._look_at, patience=HANGING))
                await self.rounds.ask_all([*self.ghosts, *unrecorded])
                group.create_task(self.rounds.run())
                group.create_task(self.memory.run())
                group.create_task(self._clean_up_moved())
                self.connected = True
                for one in (self.plugins.run(), self.heart.run(), self.labels.run()):
                    group.create_task(one)
                if ready is not None:
                    ready.set()
        finally:
            self.connected = False
            await self.launchers.hang_up()

    def _watches(self) -> tuple[Informer, ...]:
        return self.kubevirts, self.pods, self.arriving, self.vmis

    async def _look_at(self, key: str) -> None:
        await execute(key, self.parts)

    async def _clean_up_moved(self) -> None:
        try:
            await clean_up_moved(self.ghosts, answers, self.parts)
        except Exception:  # one VMI's trouble must not end the agent
            logger.exception("VMIs that moved away while no agent ran: not all is cleaned up")

    def _unrecorded(self) -> list[Ghost]:
        """Launchers that are there and have no record: the records were lost, or an agent died before it wrote."""
        recorded = {ghost.uid for ghost in self.ghosts}
        found = []
        for vmi in self.vmis.store.objects():
            if is_final(vmi) or uid_of(vmi) in recorded:
                continue
            try:
                socket = self.sockets.find(vmi)
            except Exception as error:  # what a pass over it will say again
                logger.warning("%s: %s", key_of(vmi), error)
                continue
            if socket is not None:
                about = metadata(vmi)
                found.append(Ghost(str(about["namespace"]), str(about["name"]), uid_of(vmi), str(socket)))
        return found

    def _on_vmi(self, change: Change) -> None:
        self.parts.expectations.clear(change.key)
        self.queue.forget(change.key)
        self.queue.add(change.key)

    def _on_configuration(self, change: Change) -> None:
        found: dict[str, Any] = {} if change.deleted else cluster.configuration_of(change.object)
        try:
            self.parts.config = ClusterConfig.from_mapping(found)
        except FieldError as error:
            logger.warning("KubeVirt %s: spec.configuration is not taken: %s", change.key, error)
            return
        self._raw_config = found
        self.plugins.configure(self.parts.config)
        self.labels.look_again()
        for key in self.vmis.store:
            self.queue.add(key)

    def _options(self, vmi: Vmi, preallocated: Sequence[str]) -> VirtualMachineOptions:
        return virtual_machine_options(vmi, self.parts.config, self.node.topology, preallocated)

    def _has_qemu(self, vmi: Vmi) -> bool:
        household = self.launchers.household(uid_of(vmi))
        return household is not None and household.has_qemu()
