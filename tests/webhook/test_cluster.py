"""The webhooks in a real API server, as deploy/webhook installs them but for the Service."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvnode.controller.manager import Manager
from kvnode.kube.client import Client, PatchType
from kvnode.kube.config import from_kubeconfig
from kvnode.kube.credentials import StaticToken
from kvnode.kube.errors import ApiError
from kvnode.kube.resources import KUBEVIRTS, PODS, SECRETS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from kvnode.webhook.certificates import make
from kvnode.webhook.registration import CONFIGURATION, REGISTRATIONS
from kvnode.webhook.run import Options, Webhooks
from kvnode.webhook.store import SECRET, SharedCertificates
from tests.cluster.cluster import Cluster
from tests.kube.loops import real_time
from tests.kube.support import background, client_of
from tests.webhook.ask import vm, vmi

pytestmark = pytest.mark.cluster

DEPLOY = Path(__file__).parents[2] / "deploy" / "webhook"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts/{name}",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/{name}",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{name}",
    "MutatingWebhookConfiguration": (
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{name}"
    ),
    "ValidatingWebhookConfiguration": (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}"
    ),
}


def documents(file: str, namespace: str) -> list[dict[str, Any]]:
    """A file of deploy/webhook, for a namespace of the test's."""
    text = (DEPLOY / file).read_text().replace("namespace: kvnode", f"namespace: {namespace}")
    return list(yaml.safe_load_all(text))


def apply(cluster: Cluster, document: dict[str, Any], namespace: str) -> None:
    path = PATHS[document["kind"]].format(namespace=namespace, name=document["metadata"]["name"])
    cluster.api.apply(document, path)


def token_of(cluster: Cluster, namespace: str, account: str) -> StaticToken:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return StaticToken(cluster.request("POST", path, asked)["status"]["token"])


@asynccontextmanager
async def client_as(cluster: Cluster, namespace: str, account: str) -> AsyncIterator[Client]:
    """A client that is a service account, and nothing else."""
    configuration = replace(
        from_kubeconfig(cluster.kubeconfig),
        client_certificate=b"",
        client_key=b"",
        credential=token_of(cluster, namespace, account),
    )
    async with Client(configuration) as client:
        yield client


@dataclass
class Installed:
    """The webhooks, installed and answering."""

    namespace: str
    user: Client
    controller: Client
    webhooks: Webhooks


@asynccontextmanager
async def installed(cluster: Cluster, namespace: str) -> AsyncIterator[Installed]:
    """Install the webhooks with the rights of deploy/, a controller's account beside, and take all away again."""
    for document in documents("rbac.yaml", namespace):
        apply(cluster, document, namespace)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kvnode-controller"}}
    apply(cluster, account, namespace)
    name = f"system:serviceaccount:{namespace}:kvnode-controller"
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"controller-{namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    }
    apply(cluster, binding, namespace)
    options = Options(namespace=namespace, names=("127.0.0.1",), host="127.0.0.1", port=0, every=0.2)
    try:
        async with (
            client_of(cluster) as user,
            client_as(cluster, namespace, "kvnode-controller") as controller,
            client_as(cluster, namespace, "kvnode-webhook") as own,
        ):
            webhooks, ready = Webhooks(own, options), asyncio.Event()
            async with background(webhooks.run(ready)):
                while not webhooks.address[1]:
                    await asyncio.sleep(0.05)
                register(cluster, namespace, webhooks.address[1])
                await ready.wait()
                await answering(user, namespace)
                yield Installed(namespace, user, controller, webhooks)
    finally:
        uninstall(cluster)


def register(cluster: Cluster, namespace: str, port: int) -> None:
    """The configurations of deploy/, by URL since a control plane alone has no Services."""
    for document in documents("configurations.yaml", namespace):
        for webhook in document["webhooks"]:
            service = webhook["clientConfig"].pop("service")
            webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{service['path']}"
        apply(cluster, document, namespace)


def uninstall(cluster: Cluster) -> None:
    for resource in REGISTRATIONS:
        with contextlib.suppress(Exception):
            cluster.request("DELETE", resource.path(name=CONFIGURATION))


async def answering(client: Client, namespace: str, seconds: float = 90.0) -> None:
    """Wait until the API server asks both webhooks, of which it learns apart, and trusts them."""
    told, deadline = "", time.monotonic() + seconds
    while "spec.hostname" not in told:
        assert time.monotonic() < deadline, told
        told = await answer_to(client, vmi(hostname="Not A Name"), namespace)
    while "changed" not in told:
        assert time.monotonic() < deadline, told
        told = await answer_to(client, vmi(), namespace)


async def answer_to(client: Client, instance: dict[str, Any], namespace: str) -> str:
    """What the API server says about an instance, of which nothing stays."""
    instance = in_namespace(instance, namespace, "looked-at")
    path, parameters = VIRTUAL_MACHINE_INSTANCES.path(namespace), {"dryRun": "All"}
    try:
        made = await client.call("POST", path, body=instance, parameters=parameters)
    except ApiError as error:
        await asyncio.sleep(0.1)
        return error.message
    return "taken and changed" if made["metadata"].get("finalizers") else "taken"


def in_namespace(obj: dict[str, Any], namespace: str, name: str = "") -> dict[str, Any]:
    obj["metadata"] |= {"namespace": namespace, **({"name": name} if name else {})}
    return obj


def test_the_deployment_is_one(control_plane: Cluster, namespace: str) -> None:
    paths = {
        "Service": "/api/v1/namespaces/{}/services",
        "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
        "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    }
    strict = "?dryRun=All&fieldValidation=Strict"
    for document in documents("deployment.yaml", namespace):
        made = control_plane.request("POST", paths[document["kind"]].format(namespace) + strict, document)
        assert made["metadata"]["name"] == "kvnode-webhook"


@real_time
async def test_an_instance_is_defaulted_checked_and_kept_from_users(
    control_plane: Cluster, namespace: str
) -> None:
    async with installed(control_plane, namespace) as it:
        made = await it.user.create(VIRTUAL_MACHINE_INSTANCES, in_namespace(vmi(), namespace))
        assert made["metadata"]["finalizers"] == ["kubevirt.io/foregroundDeleteVirtualMachine"]
        assert made["spec"]["domain"]["machine"] == {"type": "q35"}
        assert made["status"]["phase"] == "Pending"
        assert made["status"]["runtimeUser"] == 107

        with pytest.raises(ApiError, match=r"denied the request: spec\.hostname: ") as refusal:
            await it.user.create(
                VIRTUAL_MACHINE_INSTANCES, in_namespace(vmi(hostname="Not A Name"), namespace, "other")
            )
        assert refusal.value.status == 422
        assert refusal.value.details["causes"][0]["field"] == "spec.hostname"

        running = {**made, "status": {**made["status"], "phase": "Running"}}
        by_user = await it.user.replace(VIRTUAL_MACHINE_INSTANCES, running)
        assert by_user["status"]["phase"] == "Pending"
        label = [{"op": "add", "path": "/metadata/labels", "value": {"kubevirt.io/nodeName": "node01"}}]
        with pytest.raises(ApiError, match=r"metadata\.labels"):
            await it.user.patch(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace, label)
        handed = await it.controller.patch(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace, label)
        assert handed["metadata"]["labels"] == {"kubevirt.io/nodeName": "node01"}
        running["metadata"] = handed["metadata"]
        by_controller = await it.controller.replace(VIRTUAL_MACHINE_INSTANCES, running)
        assert by_controller["status"]["phase"] == "Running"

        more = [{"op": "replace", "path": "/spec/domain/cpu/sockets", "value": 2}]
        with pytest.raises(ApiError, match="spec: cannot change"):
            await it.user.patch(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace, more)
        await it.controller.patch(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace, more)

        await it.user.delete(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace)
        nothing = [{"op": "replace", "path": "/metadata/finalizers", "value": []}]
        await it.controller.patch(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace, nothing)
        assert await it.user.list_all(VIRTUAL_MACHINE_INSTANCES, namespace=namespace) == []


@real_time
async def test_a_machine_is_defaulted_and_checked(control_plane: Cluster, namespace: str) -> None:
    async with installed(control_plane, namespace) as it:
        made = await it.user.create(VIRTUAL_MACHINES, in_namespace(vm(), namespace))
        firmware = made["spec"]["template"]["spec"]["domain"]["firmware"]
        assert set(firmware) == {"serial", "uuid"}
        with pytest.raises(ApiError, match=r"spec\.runStrategy: is 'Sometimes'"):
            await it.user.patch(
                VIRTUAL_MACHINES, "testvm", namespace, {"spec": {"runStrategy": "Sometimes"}}, PatchType.MERGE
            )
        halted = await it.user.patch(
            VIRTUAL_MACHINES, "testvm", namespace, {"spec": {"runStrategy": "Halted"}}, PatchType.MERGE
        )
        assert halted["spec"]["template"]["spec"]["domain"]["firmware"] == firmware
        status = {"status": {"created": True}}
        await it.user.patch(
            VIRTUAL_MACHINES, "testvm", namespace, status, PatchType.MERGE, subresource="status"
        )
        await it.user.delete(VIRTUAL_MACHINES, "testvm", namespace)


@real_time
async def test_the_cluster_s_configuration_is_followed(control_plane: Cluster, namespace: str) -> None:
    async with installed(control_plane, namespace) as it:
        kubevirt = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "KubeVirt",
            "metadata": {"name": "kubevirt", "namespace": namespace},
            "spec": {"configuration": {"evictionStrategy": "External"}},
        }
        await it.user.create(KUBEVIRTS, kubevirt)
        try:
            for number in itertools.count():
                one = in_namespace(vmi(), namespace, f"one-{number}")
                made = await it.user.create(VIRTUAL_MACHINE_INSTANCES, one)
                if made["spec"]["evictionStrategy"] == "External":
                    break
                assert number < 600
                await asyncio.sleep(0.1)
        finally:
            await it.user.delete(KUBEVIRTS, "kubevirt", namespace)


@real_time
async def test_replicas_share_a_certificate_and_renew_it_while_they_answer(
    control_plane: Cluster, namespace: str
) -> None:
    async with installed(control_plane, namespace) as it:
        shared = SharedCertificates(it.user, namespace, ("127.0.0.1",))
        now = time.time()
        before, beside = await asyncio.gather(shared.current(now), shared.current(now))
        assert before == beside
        it.webhooks.clock = lambda: now + 61 * 86400
        deadline = time.monotonic() + 90
        while (after := await shared.current(now)).serving == before.serving:
            assert time.monotonic() < deadline, "it is renewed"
            await answering(it.user, namespace)
        assert after.authority == before.authority
        await answering(it.user, namespace)
        # Whatever becomes of the Secret and the configurations, they are mended.
        it.webhooks.clock = time.time
        await it.user.delete(SECRETS, SECRET, namespace)
        for resource in REGISTRATIONS:
            wiped = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
            await it.user.patch(resource, CONFIGURATION, "", wiped)
        await answering(it.user, namespace)


def _broken(data: dict[str, str], how: str) -> dict[str, str]:
    other = base64.b64encode(make(("127.0.0.1",)).serving.key).decode()
    return {
        "key": {**data, "tls.key": other},
        "authority": {**data, "ca.key": other},
        "nonsense": {**data, "tls.crt": base64.b64encode(b"nonsense").decode()},
        "successor": {**data, "next.crt": data["ca.crt"], "next.key": other},
        "missing": {name: value for name, value in data.items() if name != "ca.crt"},
        "empty": {},
    }[how]


@real_time
async def test_a_secret_that_somebody_broke_is_mended(control_plane: Cluster, namespace: str) -> None:
    async with installed(control_plane, namespace) as it:
        for how in ("key", "authority", "nonsense", "successor", "missing", "empty"):
            secret = await it.user.get(SECRETS, SECRET, namespace)
            broken = _broken(secret.get("data") or {}, how)
            await it.user.replace(SECRETS, {**secret, "data": broken})
            found: dict[str, Any] = {"data": broken}
            async with asyncio.timeout(90):
                while (found.get("data") or {}) == broken:
                    await asyncio.sleep(0.1)
                    found = await it.user.get(SECRETS, SECRET, namespace)
            await answering(it.user, namespace)
            # A replica that begins now finds what it can use.
            await SharedCertificates(it.user, namespace, ("127.0.0.1",)).current(time.time())


@real_time
async def test_an_authority_of_the_future_is_made_anew(control_plane: Cluster, namespace: str) -> None:
    """Left by a replica whose clock was far ahead until it was set."""
    async with client_of(control_plane) as client:
        shared = SharedCertificates(client, namespace, ("127.0.0.1",))
        before = await shared.current(time.time())
        after = await shared.current(time.time() - 86400)
        assert after.authority != before.authority
        assert await shared.current(time.time()) == after


@real_time
async def test_a_change_to_the_configurations_keeps_the_bundle(
    control_plane: Cluster, namespace: str
) -> None:
    """Whoever applies deploy/webhook again, as an upgrade does, has the bundle written again."""
    other = base64.b64encode(make(("127.0.0.1",)).bundle).decode()
    async with installed(control_plane, namespace) as it:
        for resource in REGISTRATIONS:
            patch = [
                {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": other},
                {"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 7},
            ]
            changed = await it.user.patch(resource, CONFIGURATION, "", patch)
            assert changed["webhooks"][0]["clientConfig"]["caBundle"] == other
        await answering(it.user, namespace)


@real_time
async def test_many_replicas_that_begin_at_once_make_one_authority(
    control_plane: Cluster, namespace: str
) -> None:
    async with client_of(control_plane) as client:
        shared = SharedCertificates(client, namespace, ("127.0.0.1",))
        found = await asyncio.gather(*(shared.current(time.time()) for _ in range(4)))
    assert all(one == found[0] for one in found)


@real_time
async def test_while_none_answers_nothing_of_these_kinds_is_taken_and_all_else_is(
    control_plane: Cluster, namespace: str
) -> None:
    try:
        register(control_plane, namespace, 1)
        async with client_of(control_plane) as client:
            told, deadline = "", time.monotonic() + 90
            while "failed calling webhook" not in told:
                assert time.monotonic() < deadline, told
                told = await answer_to(client, vmi(), namespace)
            with pytest.raises(ApiError, match="failed calling webhook"):
                await client.create(VIRTUAL_MACHINES, in_namespace(vm(), namespace))
            made = {"metadata": {"name": "k", "namespace": namespace}, "spec": {}}
            await client.create(KUBEVIRTS, {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", **made})
            await client.delete(KUBEVIRTS, "k", namespace)
    finally:
        uninstall(control_plane)


@real_time
async def test_the_controllers_do_their_work_behind_the_webhooks(
    control_plane: Cluster, namespace: str
) -> None:
    async with (
        installed(control_plane, namespace) as it,
        background(Manager(it.controller, namespace=namespace).run()),
    ):
        await it.user.create(VIRTUAL_MACHINES, in_namespace(vm(), namespace))
        pods: list[dict[str, Any]] = []
        while not pods:
            await asyncio.sleep(0.1)
            pods = await it.user.list_all(PODS, namespace=namespace)
        instance = await it.user.get(VIRTUAL_MACHINE_INSTANCES, "testvm", namespace)
        machine = await it.user.get(VIRTUAL_MACHINES, "testvm", namespace)
        assert pods[0]["metadata"]["ownerReferences"][0]["uid"] == instance["metadata"]["uid"]
        assert instance["metadata"]["ownerReferences"][0]["uid"] == machine["metadata"]["uid"]
        assert instance["metadata"]["finalizers"].count("kubevirt.io/foregroundDeleteVirtualMachine") == 1
        template = machine["spec"]["template"]["spec"]
        assert instance["spec"]["domain"]["firmware"] == template["domain"]["firmware"]
        await it.user.delete(VIRTUAL_MACHINES, "testvm", namespace)
        for pod in pods:
            await it.user.delete(PODS, pod["metadata"]["name"], namespace)
