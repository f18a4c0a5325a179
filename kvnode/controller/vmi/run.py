"""One look at one VMI."""

from __future__ import annotations

from dataclasses import dataclass

from kvnode.controller.indices import CONTROLLER
from kvnode.controller.meta import name_of, namespace_of
from kvnode.controller.ports import Caches, Settings, World
from kvnode.kube.errors import ApiError, NotFound
from kvnode.kube.expectations import Expectations
from kvnode.kube.objects import Object, key_of, timestamp, uid_of
from kvnode.kube.resources import PODS


@dataclass(slots=True)
class Run:
    """What one pass over a VMI knows and changes."""

    world: World
    settings: Settings
    key: str
    original: Object
    """The VMI as the cache had it; not changed."""

    vmi: Object
    """The VMI as this pass makes it."""

    pod: Object | None
    """The pod that runs it, or is to."""

    data_volumes: list[Object]
    pod_expectations: Expectations
    vmi_expectations: Expectations
    claim_expectations: Expectations
    is_pod_new: bool = False
    """Whether this pass made the pod."""

    @property
    def caches(self) -> Caches:
        """What the watches know."""
        return self.world.caches

    @property
    def namespace(self) -> str:
        """The VMI's namespace."""
        return namespace_of(self.original)

    def now(self) -> str:
        """The moment, as the API writes it."""
        return timestamp(self.world.clock())

    def event(self, kind: str, reason: str, message: str) -> None:
        """Record an event about the VMI."""
        self.world.recorder.record(self.original, kind, reason, message)

    def pods(self) -> list[Object]:
        """The pods that the VMI controls, by name, and the one that was just made."""
        found = self.caches.pods.by(CONTROLLER, uid_of(self.original))
        if self.pod is not None and uid_of(self.pod) not in {uid_of(one) for one in found}:
            found.append(self.pod)
        return [one for one in found if namespace_of(one) == self.namespace]

    async def delete_pod(self, pod: Object, *, grace_seconds: int | None = None) -> None:
        """Delete a pod; one that is gone already is as good.

        Raises:
            ApiError: the server refused.
        """
        self.pod_expectations.expect_deletions(self.key, [key_of(pod)])
        try:
            await self.world.api.delete(PODS, name_of(pod), namespace_of(pod), grace_seconds=grace_seconds)
        except ApiError as error:
            self.pod_expectations.deletion_observed(self.key, key_of(pod))
            if not isinstance(error, NotFound):
                raise
