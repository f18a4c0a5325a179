"""deploy/controller on a real API server: all that it grants is used, and nothing else is needed."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kvnode.cli.controller import LEASE, command
from kvnode.kube.client import Client
from kvnode.kube.objects import Object
from kvnode.kube.resources import (
    DATA_VOLUMES,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from tests.cluster.audit import asked, granted
from tests.cluster.cluster import Cluster, up
from tests.cluster.errors import ClusterError
from tests.cluster.fixtures import make_namespace
from tests.controller.processes import controller
from tests.controller.standin import StandIn
from tests.controller.test_manager import Played, eventually, machine
from tests.kube.loops import real_time
from tests.kube.support import background, client_of

pytestmark = pytest.mark.cluster

DEPLOY = Path(__file__).parents[2] / "deploy" / "controller"
ACCOUNT = "kvnode-controller"
HOME = "kvnode"


def documents() -> list[Object]:
    return [
        document
        for file in sorted(DEPLOY.glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
    ]


def path_of(document: Object) -> str:
    version, kind, meta = document["apiVersion"], document["kind"], document["metadata"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    return f"{base}{inside}/{kind.lower()}s/{meta['name']}"


def kind_of(group: str, version: str, plural: str, kind: str) -> Object:
    """The definition of another project's kind, that takes anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [served],
        },
    }


def await_served(cluster: Cluster, definition: Object) -> None:
    """Wait until the API server serves a kind, which is a moment after it took the definition."""
    spec = definition["spec"]
    deadline = time.monotonic() + 60
    while True:
        try:
            cluster.request(
                "GET", f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
            )
        except ClusterError:
            assert time.monotonic() < deadline, definition["metadata"]["name"]
            time.sleep(0.05)
        else:
            return


@pytest.fixture
def audited() -> Iterator[Cluster]:
    """An API server that writes down what it is asked, with all that the controllers know of installed."""
    cluster = up(lambda line: print(line, file=sys.stderr), audit=True)
    try:
        make_namespace(cluster, HOME)
        for document in documents():
            cluster.api.apply(document, path_of(document))
        for definition in (
            kind_of("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume"),
            kind_of(
                "kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration"
            ),
        ):
            cluster.api.apply(definition, path_of(definition))
            await_served(cluster, definition)
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        storage: Object = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local", "annotations": default},
            "provisioner": "example.test/local",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        cluster.request("POST", "/apis/storage.k8s.io/v1/storageclasses", storage)
        yield cluster
    finally:
        cluster.down()


def account_config(cluster: Cluster, path: Path) -> Path:
    """A kubeconfig with the controller's account and none of the administrator's rights."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    asked = f"/api/v1/namespaces/{HOME}/serviceaccounts/{ACCOUNT}/token"
    token = cluster.request("POST", asked, request)["status"]["token"]
    ca = base64.b64encode(cluster.ca.read_bytes()).decode()
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": HOME}}],
        "clusters": [{"name": "it", "cluster": {"server": cluster.server, "certificate-authority-data": ca}}],
        "users": [{"name": "it", "user": {"token": token}}],
    }
    path.write_text(json.dumps(config))
    return path


def with_volumes(vm: Object) -> Object:
    """Two DataVolumes of its own; the first is there and nobody's."""
    vm["spec"]["dataVolumeTemplates"] = [
        {"metadata": {"name": name}, "spec": {"source": {"blank": {}}}} for name in ("orphan", "made")
    ]
    return vm


def with_state(vm: Object) -> Object:
    vm["spec"]["template"]["spec"]["domain"]["devices"]["tpm"] = {"persistent": True}
    return vm


async def start_many_things(user: Client, namespace: str, refusing: str) -> None:
    """Whatever makes the controllers do something that they do seldom."""
    orphan = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "spec": {}}
    await user.create(DATA_VOLUMES, {**orphan, "metadata": {"name": "orphan", "namespace": namespace}})
    claim: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "needless",
            "namespace": namespace,
            "labels": {"persistent-state-for": "plain"},
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}},
    }
    await user.create(PERSISTENT_VOLUME_CLAIMS, claim)
    lost: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "lost",
            "labels": {"kubevirt.io/schedulable": "true"},
            "annotations": {"kubevirt.io/heartbeat": "2020-01-01T00:00:00Z"},
        },
    }
    await user.create(NODES, lost)
    left: Object = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "left", "namespace": namespace},
        "spec": machine(namespace, "left")["spec"]["template"]["spec"],
    }
    await user.create(VIRTUAL_MACHINE_INSTANCES, left)
    for vm in (
        machine(namespace, "plain"),
        machine(namespace, "left"),
        with_volumes(machine(namespace, "volumes")),
        with_state(machine(namespace, "state")),
        machine(refusing, "refused"),
    ):
        await user.create(VIRTUAL_MACHINES, copy.deepcopy(vm))


async def evacuate(user: Client, played: Played) -> None:
    """Ask a running instance to leave its node: its pod is told so."""
    asked = [{"op": "add", "path": "/status/evacuationNodeName", "value": "node01"}]
    await user.patch(VIRTUAL_MACHINE_INSTANCES, played.name, played.namespace, asked)

    async def told() -> bool:
        pod = await played.pod()
        return (
            "descheduler.alpha.kubernetes.io/eviction-in-progress" in (pod or {})["metadata"]["annotations"]
        )

    await eventually(told)


async def restart_changed(user: Client, played: Played) -> None:
    """Change a machine and let its guest crash: its old revision goes."""
    change = [{"op": "add", "path": "/spec/template/spec/hostname", "value": "changed"}]
    await user.patch(VIRTUAL_MACHINES, played.name, played.namespace, change)
    before = (await played.vmi("Running"))["metadata"]["uid"]
    await played.become("Failed")

    async def anew() -> bool:
        found = await user.get(VIRTUAL_MACHINE_INSTANCES, played.name, played.namespace)
        return bool(found["metadata"]["uid"] != before)

    await eventually(anew)


@real_time
async def test_every_right_is_used_and_no_other_is_asked_for(audited: Cluster, tmp_path: Path) -> None:
    namespace = make_namespace(audited)
    refusing = make_namespace(audited)
    strict = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    merge = "application/merge-patch+json"
    audited.request("PATCH", f"/api/v1/namespaces/{refusing}", strict, merge)
    config = account_config(audited, tmp_path / "config")
    async with client_of(audited) as user:
        await start_many_things(user, namespace, refusing)
        with controller(config, tmp_path / "log", namespace=HOME, watch="") as process:
            async with background(StandIn(user).run()):
                played = Played(user, namespace, "plain")
                await played.vm("Running", ready=True)
                await evacuate(user, played)
                await restart_changed(user, played)
                await played.vm("Running", ready=True)
                await user.delete(VIRTUAL_MACHINES, "plain", namespace)
                await eventually(lambda: told_again(user, refusing))
                with contextlib.suppress(TimeoutError):  # what is missing is told below
                    await eventually(lambda: all_used(audited), 60)
            assert process.poll() is None, (tmp_path / "log").read_text()
    refused = {right for right, code in asked(audited, HOME, ACCOUNT) if code == 403}
    # What Pod Security refuses is no right that is missing.
    assert refused <= {("", "pods", "create")}
    assert granted(documents()) - {right for right, _ in asked(audited, HOME, ACCOUNT)} == set()


async def told_again(user: Client, namespace: str) -> bool:
    """Whether an event was counted more than once."""
    return any(event.get("count", 0) > 1 for event in await user.list_all(EVENTS, namespace))


async def all_used(cluster: Cluster) -> bool:
    """Whether nothing more needs to be waited for."""
    await asyncio.sleep(0.2)
    return granted(documents()) <= {right for right, _ in asked(cluster, HOME, ACCOUNT)}


def test_the_deployment_runs_what_there_is() -> None:
    deployment = next(one for one in documents() if one["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["replicas"] == 2
    assert pod["serviceAccountName"] == ACCOUNT
    program, verb, *options = pod["containers"][0]["command"]
    assert (program, verb) == ("kvnode", "controller")
    known = {name for one in command.params for name in one.opts}
    assert {option.partition("=")[0] for option in options} <= known
    named = [rule for one in documents() if one["kind"] == "Role" for rule in one["rules"]]
    assert [rule.get("resourceNames") for rule in named] == [None, [LEASE]]
