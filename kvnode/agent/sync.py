"""What is done about a VMI and its domain, in one pass (``pkg/virt-handler/vm.go:1433-1601``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kvnode.agent import domain as states
from kvnode.agent.conditions import guest_agent, migratable, state
from kvnode.agent.domain import Domain
from kvnode.agent.errors import FAILURES, IrrecoverableError, SeveralLaunchersError
from kvnode.agent.hearing import has_come_up
from kvnode.agent.parts import Parts
from kvnode.agent.phase import compute_phase, is_migration_target
from kvnode.agent.shutdown import delete, destroy, shut_down
from kvnode.agent.status.checksums import update_checksums
from kvnode.agent.status.fields import update_fields
from kvnode.agent.status.write import write_status
from kvnode.agent.update import update
from kvnode.agent.vmi import Vmi, copy_of, is_deleting, is_final, is_running, key_of, phase_of, uid_of
from kvnode.api.phases import Phase
from kvnode.kube.objects import timestamp

_PHASE_EVENTS = {
    Phase.RUNNING: ("Normal", "Started", "the VM runs"),
    Phase.SUCCEEDED: ("Normal", "Stopped", "the VM was shut down"),
    Phase.FAILED: ("Warning", "Stopped", "the VM crashed, was killed or could not be kept"),
}


class Action(Enum):
    """The one thing that a pass does."""

    SHUT_DOWN = "shut down"
    DESTROY = "destroy"
    DELETE = "delete"
    UPDATE = "update"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Subject:
    """A VMI and its domain, as a pass finds them."""

    vmi: Vmi
    exists: bool
    """Whether the VMI's object is there; else ``vmi`` is a reference."""
    domain: Domain | None

    @property
    def is_alive(self) -> bool:
        """Whether there is a guest to be shut down."""
        return self.domain is not None and self.domain.is_alive


def choose(subject: Subject, *, in_phase: bool) -> Action:
    """The action for a subject; ``in_phase``: its phase is what it should be, so that it can be worked on."""
    vmi, domain = subject.vmi, subject.domain
    final = is_final(vmi)
    asked = domain is not None and domain.asks_for_shutdown and is_running(vmi)
    unwanted = asked or not subject.exists or is_deleting(vmi)
    if unwanted and subject.is_alive:
        return Action.SHUT_DOWN
    if domain is not None and domain.failed_post_copy:
        return Action.DESTROY
    dead = domain is not None and not subject.is_alive
    if unwanted or final or dead:
        return Action.DELETE
    return Action.UPDATE if in_phase else Action.NOTHING


async def sync(subject: Subject, parts: Parts) -> None:
    """Decide, act, and write the VMI's status.

    Raises one of `errors.FAILURES` when the action or the write failed; the pass is then repeated.
    """
    # A domain goes before the status is written that says how it ended, and that write may have failed.
    domain = subject.domain or parts.ends.get(uid_of(subject.vmi))
    if domain is not None and domain.status == states.UNKNOWN:
        return  # nothing is said about a VM whose launcher cannot be asked
    vmi = copy_of(subject.vmi)
    vmi["status"] = vmi.get("status") or {}
    subject = Subject(vmi, subject.exists, domain)
    try:
        in_phase = subject.exists and not is_final(vmi) and await _is_in_phase(subject, parts)
    except SeveralLaunchersError as error:
        await _tell_why(vmi, error, parts)
        raise
    if subject.exists and is_final(vmi) and not subject.is_alive:
        await parts.hooks.call("PostVMStop", vmi)
    action = choose(subject, in_phase=in_phase)
    may_live = domain is not None and not is_final(vmi)
    if action is Action.DELETE and may_live and await has_come_up(vmi, parts):
        return  # what it is now has put it into the queue
    told = False
    if action is Action.DELETE and may_live and domain is not None and subject.exists:
        told = not parts.ends.keep(uid_of(vmi), domain)
        if told:  # the disk is full: nothing but the launcher has it until the status does
            await update_status(vmi, domain, None, parts)
    failure: Exception | None = None
    try:
        await _act(action, subject, parts)
    except FAILURES as error:
        failure = error
        if not is_final(vmi):
            parts.recorder.event(vmi, "Warning", "SyncFailed", str(error))
    if subject.exists and not told:
        await update_status(vmi, domain, failure, parts)
    parts.ends.forget(uid_of(vmi))
    if failure is not None:
        raise failure


async def _tell_why(vmi: Vmi, error: Exception, parts: Parts) -> None:
    """Nothing can be said of the VM now: its condition names the cause."""
    old = copy_of(vmi)
    parts.recorder.event(vmi, "Warning", "SyncFailed", str(error))
    state.set_synchronized(vmi, error, parts.clock.now())
    await write_status(old, vmi, parts)


async def _is_in_phase(subject: Subject, parts: Parts) -> bool:
    """Whether the VMI can be worked on: a change of phase is written first, and failing storage is left in peace."""
    vmi, domain = subject.vmi, subject.domain
    if await compute_phase(vmi, domain, parts.launchers, parts.queue) != phase_of(vmi):
        return False
    if domain is not None and domain.has_io_error:
        delay = parts.io_retry.delay(uid_of(vmi))
        if delay > 0:
            parts.queue.add_after(key_of(vmi), delay)
            return False
    return True


async def _act(action: Action, subject: Subject, parts: Parts) -> None:
    vmi, domain = subject.vmi, subject.domain
    if action is Action.SHUT_DOWN and domain is not None:
        await shut_down(vmi, domain, parts)
    elif action is Action.DESTROY:
        await destroy(vmi, parts)
        raise IrrecoverableError("a post-copy migration failed halfway: the guest's memory is lost")
    elif action is Action.DELETE:
        await delete(vmi, parts)
    elif action is Action.UPDATE:
        await update(vmi, domain, parts)


async def update_status(vmi: Vmi, domain: Domain | None, failure: Exception | None, parts: Parts) -> None:
    """Bring the status of ``vmi`` up to date and write it, unless the VMI has ended already."""
    if is_final(vmi):
        return
    old = copy_of(vmi)
    await update_fields(vmi, domain, parts)
    vmi["status"]["phase"] = await compute_phase(vmi, domain, parts.launchers, parts.queue)
    await _update_conditions(vmi, domain, parts)
    await update_checksums(vmi, failure, parts)
    state.set_synchronized(vmi, failure, parts.clock.now())
    phase = phase_of(vmi)
    changed = phase != phase_of(old)
    if changed:
        _stamp(vmi, parts)
    await write_status(old, vmi, parts)
    if not changed:
        return
    if phase in _PHASE_EVENTS:
        parts.recorder.event(vmi, *_PHASE_EVENTS[Phase(phase)])
    if phase == Phase.RUNNING and not is_migration_target(vmi):
        await parts.hooks.call("PostVMStart", vmi)


async def _update_conditions(vmi: Vmi, domain: Domain | None, parts: Parts) -> None:
    now = parts.clock.now()
    state.set_access_credentials(vmi, domain, parts.recorder, now)
    migratable.set_migratable(vmi, migratable.Node(parts.config, parts.host_cpu_model), parts.recorder)
    connected = domain is not None and domain.has_guest_agent
    versions = parts.config.supported_guest_agent_versions
    await guest_agent.set_agent_connected(vmi, connected, parts.launchers, versions, parts.clock)
    state.set_paused(vmi, domain, parts.node, now)
    gate = parts.config.gate("CrossArchitectureVirtualization")
    state.set_software_emulation(vmi, domain, gate=gate, host=parts.architecture, now=now)


def _stamp(vmi: Vmi, parts: Parts) -> None:
    """Note when the VMI came into its phase for the first time."""
    stamps = vmi["status"].get("phaseTransitionTimestamps") or []
    phase = phase_of(vmi)
    if all(one.get("phase") != phase for one in stamps):
        stamp = {"phase": phase, "phaseTransitionTimestamp": timestamp(parts.clock.now())}
        vmi["status"]["phaseTransitionTimestamps"] = [*stamps, stamp]
