"""The parts that both controllers are made of."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.controller import conditions
from kvnode.controller.equality import bare, equal, equal_specs
from kvnode.controller.freshness import TTL, FreshApi
from kvnode.controller.indices import by_controller, by_kept_instance
from kvnode.controller.jsonpatch import add_or_change, escape
from kvnode.controller.manager import _Configuration
from kvnode.controller.meta import put
from kvnode.controller.mirror import mirrored
from kvnode.controller.podnetworks import network_statuses, secondary_interfaces
from kvnode.controller.ports import Settings
from kvnode.kube.errors import NotFound
from kvnode.kube.informer import Change
from kvnode.kube.resources import VIRTUAL_MACHINES, Resource
from kvnode.kube.store import Entry, entry_of
from tests.controller.objects import SPEC, vm, vmi
from tests.kube.loops import settle, virtual_time
from tests.reference.apiserver import RecordingServer
from tests.reference.vmcases import VMScene

TEXTS = st.dictionaries(st.text("ab", max_size=2), st.text("xy", max_size=1))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_bare_is_equal_and_stays_as_it_is(value: Any) -> None:
    assert bare(bare(value)) == bare(value)
    assert equal(value, bare(value))


def test_empty_labels_values_count() -> None:
    assert not equal({"labels": {"a": ""}}, {"labels": {}})
    assert equal({"conditions": []}, {})


def test_specs_are_compared_as_the_api_has_them() -> None:
    other = {**SPEC, "domain": {**SPEC["domain"], "memory": {"guest": "1024Mi"}}}
    assert equal_specs(SPEC, other)
    assert not equal_specs(SPEC, {**SPEC, "hostname": "x"})


@pytest.mark.parametrize("odd", [None, "Ready", {}, {"status": "True"}, {"type": ""}])
def test_what_is_no_condition_is_left_out(odd: Any) -> None:
    """Whoever may write a VM's status may write anything into its conditions."""
    obj: dict[str, Any] = {"status": {"conditions": [odd, {"type": "Ready", "status": "True"}]}}
    assert [one["type"] for one in conditions.conditions(obj)] == ["Ready"]
    scene = VMScene({"vm": vm(status=obj["status"]), "vmi": vmi(conditions=[odd])})
    assert [one["type"] for one in scene.reconcile()["vmStatusWritten"]["conditions"]] == ["Ready"]


def test_condition_changes_only_with_status_or_reason() -> None:
    obj: dict[str, Any] = {}
    conditions.update(obj, conditions.make("A", "True", "R", transition="t1"))
    conditions.update(obj, conditions.make("A", "True", "R", transition="t2"))
    assert conditions.find(obj, "A") == {
        "type": "A",
        "status": "True",
        "reason": "R",
        "lastTransitionTime": "t1",
    }
    conditions.update(obj, conditions.make("A", "False", "R", transition="t3"))
    assert conditions.has(obj, "A", "False", "R")
    conditions.remove(obj, "A")
    assert obj == {"status": {}}


@given(
    st.dictionaries(st.text(max_size=2), st.text(max_size=2)),
    st.dictionaries(st.text(max_size=2), st.text(max_size=2)),
)
def test_mirror_of_a_prefix(source: dict[str, str], target: dict[str, str]) -> None:
    before = dict(target)
    changed = mirrored(["a*"], source, target)
    assert changed is (before != target)
    assert {k: v for k, v in target.items() if k.startswith("a")} == {
        k: v for k, v in source.items() if k.startswith("a")
    }
    assert {k: v for k, v in target.items() if not k.startswith("a")} == {
        k: v for k, v in before.items() if not k.startswith("a")
    }


def test_star_alone_mirrors_nothing() -> None:
    assert not mirrored(["*", ""], {"a": "1"}, {})


def test_patches_test_what_they_replace() -> None:
    assert add_or_change("/a", None, 1) == [{"op": "add", "path": "/a", "value": 1}]
    assert [one["op"] for one in add_or_change("/a", 1, 2)] == ["test", "replace"]
    assert escape("a/b~c") == "a~1b~0c"


@pytest.mark.parametrize("nothing", [None, "", 0, False, [], {}])
def test_put_takes_out_what_says_nothing(nothing: Any) -> None:
    mapping = {"a": 1}
    put(mapping, "a", nothing)
    assert mapping == {}


def test_indices() -> None:
    owned = {"metadata": {"ownerReferences": [{"uid": "x"}, {"uid": "y", "controller": True}]}}
    assert list(by_controller(owned)) == ["y"]
    labelled = {"metadata": {"namespace": "n", "name": "p", "labels": {"persistent-state-for": "v"}}}
    assert list(by_kept_instance(labelled)) == ["n/v"]
    named = {"metadata": {"namespace": "n", "name": "persistent-state-for-v"}}
    assert list(by_kept_instance(named)) == ["n/v"]
    assert list(by_kept_instance({"metadata": {"namespace": "n", "name": "p"}})) == []


def test_secondary_interfaces_are_hashed_or_numbered() -> None:
    networks = [{"name": "default", "pod": {}}, {"name": "blue", "multus": {"networkName": "b"}}]
    (hashed,) = secondary_interfaces(networks, []).items()
    assert hashed[0] == "blue"
    assert hashed[1].startswith("pod")
    assert len(hashed[1]) == 14
    assert secondary_interfaces(networks, [{"interface": "net1"}]) == {"blue": "net1"}


@pytest.mark.parametrize("text", ["", "not JSON", "{}", "[1, null]"])
def test_hostile_network_status(text: str) -> None:
    assert network_statuses({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/network-status": text}}}) == []


def test_freshness() -> None:
    now = 0.0
    server = RecordingServer([], "2030-01-01T00:00:00Z")
    api = FreshApi(server, lambda: now)
    old = vm()
    server.put(VIRTUAL_MACHINES, old)
    assert not api.is_stale(VIRTUAL_MACHINES, old)
    changed = {**old, "spec": {**old["spec"], "runStrategy": "Halted"}}
    new = asyncio.run(api.replace(VIRTUAL_MACHINES, changed))
    assert api.is_stale(VIRTUAL_MACHINES, old)
    assert api.is_stale(VIRTUAL_MACHINES, old)
    now = TTL + 1
    assert not api.is_stale(VIRTUAL_MACHINES, old)
    now = 0.0
    newer = asyncio.run(api.replace(VIRTUAL_MACHINES, {**new, "spec": old["spec"]}))
    assert api.is_stale(VIRTUAL_MACHINES, new)
    assert not api.is_stale(VIRTUAL_MACHINES, newer)
    asyncio.run(api.replace(VIRTUAL_MACHINES, {**newer, "spec": changed["spec"]}))
    another = {**old, "metadata": {**old["metadata"], "uid": "another"}}
    assert not api.is_stale(VIRTUAL_MACHINES, another)


@pytest.mark.parametrize(
    ("seconds", "finalizers", "gone"),
    [(0, [], True), (None, [], True), (30, [], False), (0, ["example.test/kept"], False)],
    ids=["last", "no-grace-said", "terminating", "kept-by-another"],
)
def test_an_object_that_went_with_a_write_is_stale_whatever_the_cache_shows(
    seconds: int | None, finalizers: list[str], gone: bool
) -> None:
    server = RecordingServer([], "2030-01-01T00:00:00Z")
    api = FreshApi(server, lambda: 0.0)
    old = vm()
    old["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": seconds}
    server.put(VIRTUAL_MACHINES, old)
    kept = {**old, "metadata": {**old["metadata"], "finalizers": ["example.test/held", *finalizers]}}
    server.put(VIRTUAL_MACHINES, kept)
    # The answer to the last write has the version that the object had before.
    asyncio.run(
        api.replace(VIRTUAL_MACHINES, {**kept, "metadata": {**old["metadata"], "finalizers": finalizers}})
    )
    newest = {**kept, "metadata": {**kept["metadata"], "resourceVersion": "1000"}}
    assert api.is_stale(VIRTUAL_MACHINES, newest) is gone
    another = {**newest, "metadata": {**newest["metadata"], "uid": "another"}}
    assert not api.is_stale(VIRTUAL_MACHINES, another)


class Slow(RecordingServer):
    """A server whose answers to patches wait for a word."""

    def __init__(self) -> None:
        super().__init__([], "2030-01-01T00:00:00Z")
        self.go = asyncio.Event()

    async def patch(self, *arguments: Any, **more: Any) -> Any:
        await self.go.wait()
        return await super().patch(*arguments, **more)


@virtual_time
async def test_what_is_being_written_is_waited_for() -> None:
    server = Slow()
    api, old = FreshApi(server), vm()
    server.put(VIRTUAL_MACHINES, old)
    await api.settled(VIRTUAL_MACHINES, "default/testvm")
    patch = [{"op": "add", "path": "/spec/runStrategy", "value": "Halted"}]
    writing = asyncio.ensure_future(api.patch(VIRTUAL_MACHINES, "testvm", "default", patch))
    await settle()
    waiting = asyncio.ensure_future(api.settled(VIRTUAL_MACHINES, "default/testvm"))
    await api.settled(VIRTUAL_MACHINES, "default/another")
    await settle()
    assert not waiting.done()
    server.go.set()
    await waiting
    assert writing.done()
    assert api.is_stale(VIRTUAL_MACHINES, old)


@virtual_time
async def test_a_write_that_is_refused_is_not_waited_for() -> None:
    server = Slow()
    api = FreshApi(server)
    server.go.set()
    with pytest.raises(NotFound):
        await api.patch(VIRTUAL_MACHINES, "testvm", "default", [])
    await api.settled(VIRTUAL_MACHINES, "default/testvm")


@pytest.mark.parametrize("held", [True, False], ids=["finalizer", "none"])
def test_what_was_told_to_go_is_stale_until_the_cache_shows_it(held: bool) -> None:
    server = RecordingServer([], "2030-01-01T00:00:00Z")
    seen: list[Any] = []
    api, old = FreshApi(server, observe=lambda _, obj: seen.append(obj)), vm()
    if not held:
        del old["metadata"]["finalizers"]
    server.put(VIRTUAL_MACHINES, old)

    async def delete(resource: Resource, name: str, namespace: str, **_: Any) -> Any:
        await RecordingServer.delete(server, resource, name, namespace)
        return server.peek(resource, f"{namespace}/{name}") or {"kind": "Status", "status": "Success"}

    server.delete = delete  # type: ignore[method-assign]
    asyncio.run(api.delete(VIRTUAL_MACHINES, "testvm", "default"))
    assert api.is_stale(VIRTUAL_MACHINES, old) is held
    assert seen == []


def test_freshness_forgets_what_is_old() -> None:
    now = 0.0
    server = RecordingServer([], "2030-01-01T00:00:00Z")
    api = FreshApi(server, lambda: now)
    for number in range(3):
        now = number * TTL * 0.6
        machine = vm()
        machine["metadata"]["name"] = f"vm-{number}"
        server.put(VIRTUAL_MACHINES, machine)
        asyncio.run(api.replace(VIRTUAL_MACHINES, machine))
    assert len(api) == 2


def test_settings_follow_the_kubevirt_object(caplog: pytest.LogCaptureFixture) -> None:
    def kubevirt(**configuration: Any) -> Entry:
        kind = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt"}
        return entry_of({**kind, "metadata": {"name": "k"}, "spec": {"configuration": configuration}})

    first, bad = kubevirt(vmStateStorageClass="fast"), kubevirt(cpuModel=7)
    configuration = _Configuration(Settings())
    configuration.take(Change("k", None, first))
    assert configuration.settings.state_storage_class == "fast"
    configuration.take(Change("k", first, bad))
    assert configuration.settings.state_storage_class == "fast"
    assert "spec.configuration.cpuModel: must be a string" in caplog.text
    configuration.take(Change("k", bad, None))
    assert configuration.settings.state_storage_class == ""
