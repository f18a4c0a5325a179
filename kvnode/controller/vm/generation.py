"""Which generation of the VM its VMI is of (``vm.go:1355-1474,2384-2455``)."""

from __future__ import annotations

from kvnode.controller import names
from kvnode.controller.equality import equal, equal_specs
from kvnode.controller.jsonpatch import change
from kvnode.controller.meta import annotations_of, at, name_of, status_of
from kvnode.controller.vm.revisions import generation_of_name, revision_named
from kvnode.controller.vm.run import Run
from kvnode.kube.objects import Object, metadata
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES


async def follow_generation(run: Run) -> None:
    """Note on the VMI that it is of the VM's present generation, if only other parts than the template changed.

    Raises:
        ApiError: the server refused.
    """
    generation = str(metadata(run.vm).get("generation") or 0)
    if run.vmi is None or annotations_of(run.vmi).get(names.GENERATION_ANNOTATION) == generation:
        return
    revision = revision_named(run.world, run.vm, _revision_name(run.vmi))
    if revision is None:
        return
    started = at(revision, "data", "spec", "template") or {}
    if equal(started.get("metadata"), run.template.get("metadata")) and equal_specs(
        started.get("spec") or {}, run.template.get("spec") or {}
    ):
        run.vmi = await _annotate(run, run.vmi, generation)


async def note_generations(run: Run) -> None:
    """Tell in the VM's status which generation runs, and which is wanted.

    Raises:
        ApiError: the server refused.
    """
    vmi = run.vmi
    if vmi is None:
        return
    observed = _whole(annotations_of(vmi).get(names.GENERATION_ANNOTATION))
    if observed is None:
        revision = revision_named(run.world, run.vm, _revision_name(vmi))
        observed = generation_of_name(name_of(revision)) if revision else None
        if observed is None:
            return
        run.vmi = await _annotate(run, vmi, str(observed))
    status = status_of(run.vm)
    status["observedGeneration"] = observed
    status["desiredGeneration"] = int(metadata(run.vm).get("generation") or 0)


async def _annotate(run: Run, vmi: Object, generation: str) -> Object:
    old = metadata(vmi).get("annotations")
    new = {**(old or {}), names.GENERATION_ANNOTATION: generation}
    patch = change("/metadata/annotations", old, new)
    return await run.world.api.patch(VIRTUAL_MACHINE_INSTANCES, name_of(vmi), run.namespace, patch)


def _revision_name(vmi: Object) -> str:
    return str(at(vmi, "status", "virtualMachineRevisionName") or "")


def _whole(text: str | None) -> int | None:
    digits = (text or "").removeprefix("-")
    return int(text or "") if digits.isascii() and digits.isdigit() else None
