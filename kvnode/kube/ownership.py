"""Which objects are a controller's: those it owns, and orphans that fit.

Rules: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kvnode.kube.client import Client
from kvnode.kube.errors import NotFound
from kvnode.kube.objects import Object, controller_of, is_deleting, metadata, uid_of
from kvnode.kube.resources import Resource


class Disowned(Exception):  # noqa: N818 — a state of affairs
    """The owner is being deleted, or is not the one that it was taken for: it may adopt nothing."""


def controller_reference(owner: Object) -> dict[str, object]:
    """The owner reference that makes ``owner`` the controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata(owner)["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


class Claims:
    """One owner's claims, in one pass of its controller."""

    def __init__(self, client: Client, owner_resource: Resource, owner: Object, resource: Resource) -> None:
        """`owner`, as the cache has it, is of ``owner_resource``; what is claimed is of ``resource``."""
        self._client = client
        self._owner_resource = owner_resource
        self._owner = owner
        self._resource = resource
        self._may_adopt = False

    async def claim(self, candidates: Iterable[Object], fits: Callable[[Object], bool]) -> list[Object]:
        """The candidates that are the owner's, as they are after orphans were adopted and misfits released.

        An owner that is being deleted adopts and releases nothing. A candidate that vanishes meanwhile is left out.

        Raises:
            Disowned: the cache's owner is not to be trusted.
            KubeError: a call failed; the pass should be done again.
        """
        ours = []
        for candidate in candidates:
            try:
                claimed = await self._claim(candidate, fits)
            except NotFound:
                continue
            if claimed is not None:
                ours.append(claimed)
        return ours

    async def _claim(self, candidate: Object, fits: Callable[[Object], bool]) -> Object | None:
        controller = controller_of(candidate)
        if controller is not None:
            if controller.get("uid") != uid_of(self._owner):
                return None
            if fits(candidate):
                return candidate
            if not is_deleting(self._owner):
                await self._release(candidate)
            return None
        if not fits(candidate) or is_deleting(self._owner) or is_deleting(candidate):
            return None
        await self._check_owner()
        return await self._adopt(candidate)

    async def _check_owner(self) -> None:
        """See that the owner still is who the cache says, once a pass."""
        if self._may_adopt:
            return
        meta = metadata(self._owner)
        try:
            fresh = await self._client.get(
                self._owner_resource, str(meta["name"]), str(meta.get("namespace") or "")
            )
        except NotFound:
            raise Disowned(f"{self._owner['kind']} {meta['name']} is gone") from None
        if uid_of(fresh) != uid_of(self._owner):
            raise Disowned(f"{self._owner['kind']} {meta['name']} is another of that name")
        if is_deleting(fresh):
            raise Disowned(f"{self._owner['kind']} {meta['name']} is being deleted")
        self._may_adopt = True

    async def _adopt(self, candidate: Object) -> Object:
        others = metadata(candidate).get("ownerReferences") or []
        return await self._write(candidate, [*others, controller_reference(self._owner)])

    async def _release(self, candidate: Object) -> None:
        others = [
            reference
            for reference in metadata(candidate).get("ownerReferences") or []
            if reference.get("uid") != uid_of(self._owner)
        ]
        await self._write(candidate, others)

    async def _write(self, candidate: Object, references: list[object]) -> Object:
        meta = metadata(candidate)
        # The test keeps us from a namesake, and from owners that others wrote meanwhile.
        patch: list[Object] = [
            {"op": "test", "path": "/metadata/uid", "value": uid_of(candidate)},
            {"op": "test", "path": "/metadata/ownerReferences", "value": meta.get("ownerReferences")},
            {"op": "add", "path": "/metadata/ownerReferences", "value": references},
        ]
        return await self._client.patch(
            self._resource, str(meta["name"]), str(meta.get("namespace") or ""), patch
        )


def owned_by(reference_kind: str, uid: str) -> Callable[[Object], bool]:
    """Whether an object's controller is of that kind and UID."""

    def check(obj: Object) -> bool:
        controller = controller_of(obj)
        return bool(controller and controller.get("kind") == reference_kind and controller.get("uid") == uid)

    return check
