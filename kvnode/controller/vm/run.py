"""One look at one VM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvnode.controller.meta import namespace_of, spec_of
from kvnode.controller.ports import Caches, Settings, World
from kvnode.kube.expectations import Expectations
from kvnode.kube.objects import Object, key_of, timestamp, uid_of


@dataclass(slots=True)
class Run:
    """What one pass over a VM knows and changes."""

    world: World
    settings: Settings
    key: str
    original: Object
    """The VM as the cache had it; not changed."""

    vm: Object
    """The VM as this pass makes it; its status is what will be written."""

    vmi: Object | None
    expectations: Expectations
    """Creations and deletions of the VMI."""

    data_volume_expectations: Expectations
    is_rewritten: bool = False
    """Whether the spec was written; what follows from that is for the next pass."""

    @property
    def caches(self) -> Caches:
        """What the watches know."""
        return self.world.caches

    @property
    def namespace(self) -> str:
        """The VM's namespace."""
        return namespace_of(self.vm)

    @property
    def template(self) -> dict[str, Any]:
        """The VM's template, as it is in the VM."""
        template: dict[str, Any] = spec_of(self.vm).get("template") or {}
        return template

    @property
    def satisfied(self) -> bool:
        """Whether the caches show all that was done."""
        expected = (self.expectations, self.data_volume_expectations)
        return all(one.satisfied(self.key) for one in expected)

    @property
    def volumes(self) -> list[dict[str, Any]]:
        """The volumes of the VM's template."""
        return (self.template.get("spec") or {}).get("volumes") or []

    def now(self) -> str:
        """The moment, as the API writes it."""
        return timestamp(self.world.clock())

    def event(self, kind: str, reason: str, message: str) -> None:
        """Record an event about the VM."""
        self.world.recorder.record(self.original, kind, reason, message)

    def expect_start(self) -> None:
        """The VMI is about to be created."""
        self.expectations.expect_creations(self.key, 1)

    def expect_stop(self, vmi: Object) -> None:
        """The VMI is about to be deleted."""
        self.expectations.expect_deletions(self.key, [deletion_marker(vmi)])

    def not_stopped(self, vmi: Object) -> None:
        """The VMI's deletion was refused."""
        self.expectations.deletion_observed(self.key, deletion_marker(vmi))

    @property
    def start_expected(self) -> bool:
        """Whether a VMI was created that the cache does not show yet."""
        return self.expectations.pending(self.key)[0] > 0

    @property
    def stop_expected(self) -> bool:
        """Whether a VMI was deleted and the cache does not show it yet."""
        return self.expectations.pending(self.key)[1] > 0


def deletion_marker(vmi: Object) -> str:
    """What stands for a VMI among the deletions expected."""
    return f"{key_of(vmi)}/{uid_of(vmi)}"
