"""From what the watches tell to the controllers' queues and expectations (``vm.go:1960-2134``, ``vmi.go:370-580``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kvnode.api.names import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from kvnode.controller import haste
from kvnode.controller.haste import vm_cannot_wait, vmi_cannot_wait
from kvnode.controller.indices import STATE_FOR_LABEL, VOLUME
from kvnode.controller.meta import at, labels_of, namespace_of
from kvnode.controller.vm import VirtualMachineController
from kvnode.controller.vm.run import deletion_marker
from kvnode.controller.vmi import VirtualMachineInstanceController
from kvnode.kube.informer import Change
from kvnode.kube.objects import Object, controller_of, is_deleting
from kvnode.kube.store import Store

Add = Callable[[str], None]

SOON = 10.0
"""Seconds until a look that cannot be in a hurry."""


class Queue(Protocol):
    """A `WorkQueue`, as far as it is needed here."""

    def add(self, key: str) -> None:
        """Look at the key when it is its turn."""

    def add_after(self, key: str, delay: float, *, urgent: bool = False) -> None:
        """Look at the key after so many seconds, ahead of others or not."""


class Told(Protocol):
    """An `Informer`, as far as it is needed here."""

    @property
    def store(self) -> Store:
        """What is known."""

    def add_handler(self, handler: Callable[[Change], None]) -> None:
        """Tell of every change."""


def owner_key(obj: Object, kind: str) -> str:
    """Key of the owner that controls the object, if it is of that kind; else ""."""
    owner = controller_of(obj)
    return f"{namespace_of(obj)}/{owner.get('name')}" if owner and owner.get("kind") == kind else ""


def is_going(change: Change) -> bool:
    """Whether the change first shows that the object is gone, or is to go."""
    if change.deleted:
        return True
    before, after = change.before, change.after
    return after is not None and is_deleting(after) and not (before is not None and is_deleting(before))


class MachineHandlers:
    """What concerns VirtualMachines."""

    def __init__(self, controller: VirtualMachineController, vms: Store, queue: Queue) -> None:
        self._controller = controller
        self._vms = vms
        self._queue = queue
        self._add = queue.add

    def on_vm(self, change: Change) -> None:
        """A VM itself."""
        self._queue.add_after(change.key, 0 if vm_cannot_wait(change) else haste.SOON)

    def on_vmi(self, change: Change) -> None:
        """A VMI: of its VM; one without an owner may be adopted by its namesake.

        What became of it is told before new ones are started, which are many when a cluster comes up.
        """
        key = owner_key(change.object, VIRTUAL_MACHINE)
        if not key:
            self._add(change.key)
            return
        if change.added:
            self._controller.expectations.creation_observed(key)
        if is_going(change):
            self._controller.expectations.deletion_observed(key, deletion_marker(change.object))
        delay = 0 if vmi_cannot_wait(change) else haste.SOON
        self._queue.add_after(key, delay, urgent=not change.added)

    def on_data_volume(self, change: Change) -> None:
        """A DataVolume: of the VM that made it, and of those that use it."""
        key = owner_key(change.object, VIRTUAL_MACHINE)
        if key:
            if change.added:
                self._controller.data_volume_expectations.creation_observed(key)
            self._add(key)
        self._add_users(change)

    def on_claim(self, change: Change) -> None:
        """A claim: of the VMs that use it."""
        self._add_users(change)

    def _add_users(self, change: Change) -> None:
        for key in self._vms.keys_by(VOLUME, change.key):
            self._add(key)


class InstanceHandlers:
    """What concerns VirtualMachineInstances."""

    def __init__(self, controller: VirtualMachineInstanceController, vmis: Store, add: Add) -> None:
        self._controller = controller
        self._vmis = vmis
        self._add = add

    def on_vmi(self, change: Change) -> None:
        """A VMI itself."""
        self._controller.vmi_expectations.clear(change.key)
        self._add(change.key)

    def on_vm(self, change: Change) -> None:
        """A VM that is gone: its VMI need not wait for it."""
        if change.deleted and change.key in self._vmis:
            self._add(change.key)

    def on_pod(self, change: Change) -> None:
        """A pod: of the VMI that made it."""
        key = owner_key(change.object, VIRTUAL_MACHINE_INSTANCE)
        if not key:
            return
        if change.added:
            self._controller.pod_expectations.creation_observed(key)
        if is_going(change):
            self._controller.pod_expectations.deletion_observed(key, change.key)
        self._add(key)

    def on_claim(self, change: Change) -> None:
        """A claim: of the VMI whose own state it keeps, or of those that have it for a disk."""
        name = labels_of(change.object).get(STATE_FOR_LABEL)
        if name is None:
            self._add_users(change)
            return
        key = f"{namespace_of(change.object)}/{name}"
        if change.added:
            self._controller.claim_expectations.creation_observed(key)
        self._add(key)

    def on_data_volume(self, change: Change) -> None:
        """A DataVolume: of the VMIs that have it for a disk."""
        self._add_users(change)

    def _add_users(self, change: Change) -> None:
        for key in self._vmis.keys_by(VOLUME, change.key):
            self._add(key)


class NodeHandlers:
    """What concerns nodes."""

    def __init__(self, add: Add, add_after: Callable[[str, float], None]) -> None:
        self._add = add
        self._add_after = add_after

    def on_node(self, change: Change) -> None:
        """A node itself."""
        self._add(change.key)

    def on_vmi(self, change: Change) -> None:
        """A VMI that was given to a node: one that is gone is not looked at by the minute. Many VMIs are one look."""
        node = at(change.after, "status", "nodeName")
        if node and node != at(change.before, "status", "nodeName"):
            self._add_after(str(node), SOON)
